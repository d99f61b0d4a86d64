"""Pump, the collector of TiDB's binlogs (objects.md 4.8, lifecycle.md 6.6)."""
