"""Volumes that grow, and the replacement of volumes that cannot."""
