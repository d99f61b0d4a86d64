"""`kubectl tidb drain`: moves the clusters' pods off a node, one at a time (scheduler-deployment.md 12.11).

surroundings (requests) → plan (pure) → carrying it out, step by step
"""
