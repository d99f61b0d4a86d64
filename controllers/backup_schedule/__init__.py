"""The controller of BackupSchedule (backup.md 5)."""
