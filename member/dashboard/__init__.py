"""Objects of a TidbDashboard, pure (other-resources.md 4)."""
