"""The `tidb-operator` command."""
