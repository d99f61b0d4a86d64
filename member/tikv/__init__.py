"""TiKV: the stores that hold the data."""
