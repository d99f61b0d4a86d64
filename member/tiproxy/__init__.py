"""TiProxy: the proxy in front of TiDB, which keeps client connections during restarts of TiDB."""
