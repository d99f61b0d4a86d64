"""Measurements (`make bench`): one JSON line a figure, on the real control plane, beside the peer's figure."""
