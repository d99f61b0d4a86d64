"""Measurements (`make bench`): one JSON line per figure, on the real control plane, with the figure of a peer."""
