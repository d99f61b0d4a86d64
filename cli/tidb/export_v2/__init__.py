"""`kubectl tidb export-v2`: the manifests of TiDB Operator v2 for a TidbCluster of v1 (ADR 17)."""
