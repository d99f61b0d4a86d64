"""A Kubernetes and TiDB world in one process, for newcomers, tests and planning (design.md 4).

A peer of the operator, not a part of it: it speaks the Kubernetes API and the data plane's HTTP, and shares no decision
code with what it tests.
"""
