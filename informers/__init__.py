"""Caches of Kubernetes objects that follow the API server, and the news of what changed in them.

    list, watch      deltas         one step         notifications
    Reflector ──▶ DeltaFIFO ──▶ Store + indexes ──▶ one buffer and thread per handler
                                    │
                                 Listers (read-only)

Promises (informers-workqueue.md 10-16):

- A handler hears of a change only after the store shows it, or something newer; per object never backwards in time.
- A slow or failing handler delays nobody but itself.
- What a broken connection hid is found by the next list: a vanished object arrives as a tombstone.
- Objects are bytes with typed metadata, shared and immutable. What is absent may only be unseen.

To prove that a cache is right: `consistency`.

A thread is a loop over a step; only the loops wait, always on the clock they were given. Knows nothing of TiDB.
"""
