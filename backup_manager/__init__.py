"""The command `backup-manager`, which runs in the pods of Backup and Restore Jobs (backup.md 7)."""
