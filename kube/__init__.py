"""Kubernetes as bytes and dict trees: transport, typed errors, objects, writes, deletions, events, leader election.

Contains nothing about TiDB. Metadata is typed, but objects have no model, because models drop unknown fields
(informers-workqueue.md 24); the rest stays the server's bytes until it is read.
"""
