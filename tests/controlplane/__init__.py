"""Boots a real Kubernetes control plane for tests and benchmarks, on loopback."""
