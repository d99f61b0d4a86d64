"""Kubernetes as bytes and dict trees: transport, typed errors, objects, the door for writes, events, leader election.

Knows nothing of TiDB. Objects are never modelled (models drop fields that they do not know, informers-workqueue.md 24);
metadata is typed, the rest stays the server's bytes until it is read.
"""
