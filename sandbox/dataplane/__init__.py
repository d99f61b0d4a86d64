"""PD, TiKV and TiDB as far as an operator can see them (dataplane-apis.md 3-6, 15).

A process is a state machine that the data plane advances; it never waits and never asks the network itself, but names
the question it has. Names lead to processes through `network.Network`, which is also where faults are put in.
"""
