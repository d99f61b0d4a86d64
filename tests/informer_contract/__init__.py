"""The informer contract over the wire, on the sandbox and on the real control plane (informers-workqueue.md TEST-7).

What can happen to an API server and to the way there happens here: restarts, expired history, connections that die
silently, refused tokens, overload.
"""
