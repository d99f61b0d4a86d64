"""Typed clients for the components of the data plane (PD, TiKV, TiDB and others), over `ports.transport`.

A client talks to one component at one URL. It sends one request per call, decodes the component's answers and errors,
and decides nothing. Every call has a deadline (lifecycle.md F53); every call that changes something asks the fence
first.
"""
