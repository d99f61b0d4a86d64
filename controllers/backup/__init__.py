"""The controller of Backup (backup.md 3)."""
