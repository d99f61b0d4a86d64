"""The controller of DMCluster: the events that enqueue a key, and the stages of its sync."""
