"""The controller of DMCluster: which events bring a key into the queue, and what one sync of it does, in order."""
