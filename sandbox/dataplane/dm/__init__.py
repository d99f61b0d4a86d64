"""DM as it behaves: masters with an etcd of their own, workers that they bind to sources."""
