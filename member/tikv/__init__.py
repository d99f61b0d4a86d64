"""TiKV: the stores with the data."""
