"""What the operator does for single pods of a TidbCluster, as users command them by annotation (lifecycle.md 1.2)."""
