"""`kubectl tidb drain`: what of ours runs on a node goes elsewhere, one pod at a time (scheduler-deployment.md 12.11).

surroundings (requests) → plan (pure) → carrying it out, step by step
"""
