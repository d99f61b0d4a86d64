"""Caches of Kubernetes objects that follow the API server, and notifications of every change.

    list, watch      deltas         one step         notifications
    Reflector ──▶ DeltaFIFO ──▶ Store + indexes ──▶ one buffer and thread per handler
                                    │
                                 Listers (read-only)

Guarantees (informers-workqueue.md 10-16):

- A handler receives a change after the store shows it or something newer, and never an older state after a newer one.
- A slow or failing handler delays only itself.
- The list after a broken connection finds what the connection missed: a vanished object arrives as a tombstone.
- Objects are bytes with typed metadata, shared and immutable. An object that is absent may not have arrived yet.

`consistency` compares a cache with the server.

A thread is a loop over a step. Only the loops wait, on the clock that they are given.
"""
