"""`kubectl tidb`: clusters for a user of kubectl, with that user's rights."""
