"""Real processes in the place of simulated ones (Linux): a pod is a network namespace, a container a file system.

An agent lives in namespaces of its own, and without root in a user namespace. It is their first process: when it ends,
the kernel ends all others. The sandbox's process stays outside and gets sockets from it, because a socket belongs to
the network in which it was made. The simulator does not import this room.
"""
