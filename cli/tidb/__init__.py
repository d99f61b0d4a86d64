"""`kubectl tidb`: clusters as a user of kubectl sees and handles them, with the rights of that user."""
