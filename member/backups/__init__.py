"""Jobs and claims of Backups and Restores: pure functions of their specs, no I/O (backup.md 1.2, 2.3, 3.11, 4.5)."""
