"""BR: backs up a cluster's tables to files, and restores them (backup.md 7.6)."""
