"""The discovery service: how a PD without data learns which members to join, or that it is the one to begin a cluster.

It runs in a pod of its own beside each cluster; the start scripts of `member.startscript` ask it over HTTP.
"""
