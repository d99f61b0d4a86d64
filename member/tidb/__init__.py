"""TiDB: the stateless servers that speak MySQL."""
