"""The controller that executes users' commands on pods of a TidbCluster, given as annotations (lifecycle.md 1.2)."""
