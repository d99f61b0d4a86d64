"""Object storage, against servers that speak each protocol."""
