"""TiProxy: the proxy in front of TiDB, which keeps connections while TiDB restarts."""
