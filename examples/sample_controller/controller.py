"""A whole controller: every Greeter gets a ConfigMap with its greeting, and its status says so.

What is desired is computed from the Greeter alone and compared with what the caches show. Nobody asks what happened:
a ConfigMap that was changed or deleted leads to the same sync as a Greeter that was created.
"""

import os

from prometheus_client import CollectorRegistry

from controller_manager.shutdown import stopping_on_signals
from controllers.controller import Controller
from controllers.enqueueing import enqueue_object, enqueue_owner
from controllers.errors import RequeueError
from controllers.metrics import ControllerMetrics
from controllers.queues import controller_queue
from informers.factory import SharedInformerFactory
from informers.keys import split_meta_namespace_key
from informers.threads import start_thread
from kube.apply import Applier
from kube.config import ClusterConfig, load
from kube.connecting import connect
from kube.errors import Conflict
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import CONFIG_MAPS, Resource
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from workqueue.timers import Timers

GREETERS = Resource("samples.example.com", "v1", "greeters", "Greeter")


def desired(greeter: Object) -> Json:
    """The ConfigMap of a Greeter (pure: no I/O). It is owned by it, so that the garbage collector takes it along."""
    meta, spec = greeter.metadata, greeter.decode()["spec"]
    owner = {"apiVersion": GREETERS.api_version, "kind": GREETERS.kind, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {"app.kubernetes.io/managed-by": "sample-controller"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "data": {"text": f"{spec['greeting']}, {spec['whom']}!"},
    }


class GreeterSync:
    """Brings one Greeter to what its spec says: reads caches, writes through the one door."""

    def __init__(self, greeters: Lister, config_maps: Lister, applier: Applier) -> None:
        self._greeters, self._config_maps, self._applier = greeters, config_maps, applier

    def __call__(self, key: str) -> None:
        """Sync one key. Never called twice at a time for one key; what it raises is retried ever later."""
        greeter = self._greeters.get(*split_meta_namespace_key(key))
        if greeter is None or greeter.metadata.deletion_timestamp:
            return
        try:
            self._apply(greeter)
        except Conflict as error:
            raise RequeueError(f"somebody wrote since the cache was filled: {error}") from error

    def _apply(self, greeter: Object) -> None:
        meta, wanted = greeter.metadata, desired(greeter)
        self._applier.apply(CONFIG_MAPS, wanted, self._config_maps.get(meta.namespace, meta.name))
        self._applier.patch_status(
            GREETERS,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            old=greeter.decode().get("status", {}),
            new={"text": wanted["data"]["text"]},
            subresource=True,
        )


def run(config: ClusterConfig, stop: Stop, workers: int = 2) -> bool:
    """Work until `stop` is set; whether every sync had ended by then. Raises ConfigError."""
    clock, end = SystemClock(), Stop()  # `end` comes after `stop`: the last syncs still read and write
    connection, timers = connect(config, os.environ, clock, end, user_agent="sample-controller"), Timers(clock)
    factory = SharedInformerFactory(connection.client, clock, SystemRandomness())
    greeters, queue = factory.lister_for(GREETERS), controller_queue("greeter", timers)
    factory.informer_for(GREETERS).add_event_handler(enqueue_object(queue.add))
    factory.informer_for(CONFIG_MAPS).add_event_handler(enqueue_owner(GREETERS, greeters, queue.add))
    sync = GreeterSync(greeters, factory.lister_for(CONFIG_MAPS), Applier(connection.client))
    metrics = ControllerMetrics(CollectorRegistry()).of("greeter")
    controller = Controller("greeter", queue, sync, clock=clock, metrics=metrics)
    ticking = start_thread("timers", lambda: timers.run(end))
    factory.start(end)
    try:
        return all(factory.wait_for_cache_sync(stop).values()) and controller.run(workers, stop)
    finally:
        end.set()
        connection.transport.close()
        factory.shutdown()
        ticking.join()


def main() -> int:
    """Run in the cluster of $KUBECONFIG, or of the pod this is, until a signal comes; the exit code."""
    stop = Stop()
    with stopping_on_signals(stop):
        return 0 if run(load("", os.environ, SystemClock()), stop) else 1


if __name__ == "__main__":
    raise SystemExit(main())
