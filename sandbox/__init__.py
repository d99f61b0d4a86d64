"""A simulated Kubernetes and TiDB in one process, for newcomers, tests and planning (design.md 4).

The sandbox is a peer of the operator: it speaks the Kubernetes API and the data plane's HTTP, and shares no decision
code with the operator that it tests.
"""
