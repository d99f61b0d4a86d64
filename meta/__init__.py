"""Housekeeping around the members of a cluster: labels and ids, reclaim policies, orphaned pods, leftover claims.

Each module is a stage of the reconcile, or supports one (lifecycle.md 11). Members work without these stages, so none
of them ever stops another stage.
"""
