"""Volumes that grow, and volumes that are replaced because they cannot."""
