"""Objects of a TidbNGMonitoring, pure (other-resources.md 5)."""
