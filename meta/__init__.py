"""Housekeeping around the members of a cluster: labels and ids, reclaim policies, orphaned pods, claims left behind.

Each module is one stage of the reconcile, or what a stage decides with (lifecycle.md 11). Nothing here keeps a member
from working; so nothing here ever stops another stage.
"""
