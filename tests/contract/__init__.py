"""One contract, two worlds: the sandbox and the real control plane (design.md 3.9).

Where they differ, the sandbox is wrong.
"""
