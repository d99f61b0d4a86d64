"""TiDB: the stateless servers that speak the MySQL protocol."""
