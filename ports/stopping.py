"""The signal that asks a thread to stop (informers-workqueue.md TH-10, TH-11)."""

from ports.latch import Latch


class Stop(Latch):
    """Asks threads to end. A thread that blocks in the network registers a callback that ends the blocking call.

    The flag is set first, then the callbacks run.
    """
