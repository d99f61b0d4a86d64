"""The controller of Restore (backup.md 4)."""
