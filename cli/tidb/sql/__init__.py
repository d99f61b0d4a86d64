"""`kubectl tidb sql`: an SQL client of the user, connected to a TiDB server of a cluster.

command (which pod, which Secrets) → tunnel (`kubectl port-forward`) → clients (options of each client)
"""
