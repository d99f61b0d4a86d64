"""TiCDC: change data capture; each pod is a capture that replicates the tables which the owner assigns to it."""
