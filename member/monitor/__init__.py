"""The desired objects of a TidbMonitor, and the configuration of its Prometheus. Pure functions, no I/O."""
