"""`python -m bench.watcher KUBECONFIG COUNT`: COUNT informers on one resource, until SIGTERM."""

import signal
import sys
import threading

from bench.figures import logs_to_stderr
from informers.factory import SharedInformerFactory
from kube.connecting import connect
from kube.resources import CONFIG_MAPS
from kube.user_config import load
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop


def main() -> int:
    """Print `watching` once all caches are full; end when stopped."""
    logs_to_stderr()
    kubeconfig, count = sys.argv[1], int(sys.argv[2])
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    clock, stop = SystemClock(), Stop()
    connection = connect(load(kubeconfig, {}, clock), {}, clock, stop)
    factories = [SharedInformerFactory(connection.client, clock, SystemRandomness()) for _ in range(count)]
    for factory in factories:
        factory.informer_for(CONFIG_MAPS)
        factory.start(stop)
    synced = all(all(factory.wait_for_cache_sync(stop).values()) for factory in factories)
    stopped.wait(1.0)  # a cache is full before its watch is open
    if synced:
        print("watching", flush=True)  # noqa: T201  (for the parent)
    stopped.wait()
    stop.set()
    connection.transport.close()
    return 0 if synced and all(factory.shutdown() for factory in factories) else 1


if __name__ == "__main__":
    sys.exit(main())
