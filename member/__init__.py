"""Decisions about the components of a TiDB cluster: what they should look like, and the next step.

Desired objects are pure functions of the TidbCluster (`desired.py` of each component). Whatever reads or writes goes
through the reconcile's deps; see ARCHITECTURE.md.
"""
