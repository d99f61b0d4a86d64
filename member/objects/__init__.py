"""The common parts of desired Kubernetes objects. Pure functions, no I/O."""
