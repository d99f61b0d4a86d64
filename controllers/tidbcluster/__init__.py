"""The controller of TidbCluster: the events that enqueue a key, and the stages of its sync."""
