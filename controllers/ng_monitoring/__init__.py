"""The controller of TidbNGMonitoring (other-resources.md 5)."""
