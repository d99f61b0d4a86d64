"""The frame of the controllers whose objects Jobs carry out: Backup, Restore, CompactBackup (backup.md 1)."""
