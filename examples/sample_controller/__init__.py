"""A controller for a custom resource of its own, from watch to write, in one file."""
