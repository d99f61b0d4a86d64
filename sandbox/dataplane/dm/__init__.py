"""DM: masters with an embedded etcd, and workers that they bind to sources."""
