"""The controller of CompactBackup (backup.md 6)."""
