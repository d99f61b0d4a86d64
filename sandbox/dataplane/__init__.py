"""PD, TiKV, TiDB and others, as far as an operator can observe them (dataplane-apis.md 3-6, 15).

A process is a state machine that the data plane advances. It never waits and sends no request itself, but returns its
question. `network.Network` resolves names to processes and injects faults.
"""
