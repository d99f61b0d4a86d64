"""What the controllers have in common whose objects are carried out by Jobs: Backup and Restore (backup.md 1)."""
