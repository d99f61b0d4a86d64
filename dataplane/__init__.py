"""What the operator says to PD, TiKV and TiDB: typed clients over `ports.transport`.

A client is one component at one URL. It sends one request per call, knows the component's answers and refusals, and
decides nothing. Every call has a deadline (lifecycle.md F53); every call that changes something asks the fence first.
"""
