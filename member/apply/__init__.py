"""Writes of objects: the record of the last write, the difference from it, and the write itself."""
