"""A rehearsal: the shipped controllers in a simulated Kubernetes and TiDB, on a clock that is moved event by event.

The simulator (`simulate`) rehearses faults, `tidb-operator plan` (`cli.plan`) a user's change.
"""
