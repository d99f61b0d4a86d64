"""The command that runs in the pods of Backup and Restore Jobs."""
