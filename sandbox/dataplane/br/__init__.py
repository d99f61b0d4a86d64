"""BR: a cluster's tables into files, and back (backup.md 7.6)."""
