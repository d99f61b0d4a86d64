"""Desired objects of Kubernetes: what all components share. Pure functions, no I/O."""
