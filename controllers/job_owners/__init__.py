"""The frame of the controllers of Backup, Restore and CompactBackup, whose work Jobs do (backup.md 1)."""
