"""The controller of TidbMonitor (other-resources.md 3.2 to 3.7)."""
