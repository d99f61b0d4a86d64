"""The discovery service: decides whether a PD without data joins a cluster or begins one.

It runs in its own pod beside each cluster; the start scripts of `member.startscript` call it over HTTP.
"""
