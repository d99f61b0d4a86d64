"""The memory of a cluster between two reconciles, for as long as the process lives."""
