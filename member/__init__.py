"""Decisions about the components of a TiDB cluster: their desired objects, and the next step towards them.

Desired objects are pure functions of the TidbCluster (`desired.py` of each component). All reads and writes use the
clients in the reconcile's `deps`; see ARCHITECTURE.md.
"""
