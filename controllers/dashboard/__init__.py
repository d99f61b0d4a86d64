"""The controller of TidbDashboard (other-resources.md 4)."""
