"""Tests of controllers without a cluster: an API server in the test's own process, and controllers in front of it.

`simulated` serves a Kubernetes API over HTTP on the loopback interface: built-in resources, custom resources with their
schemas, watches, server-side apply, finalizers. It has no built-in controllers, so no pod runs, and an object whose
owner was deleted stays. `fake_source` has a server for one resource with faults on demand, for tests of informers.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry

from controller_manager.manager import Build, ControllerManager
from controller_manager.process_options import ProcessOptions
from controllers.runtime import new_runtime
from informers.factory import SharedInformerFactory
from informers.list_watch import Selectors
from kube.client import Client
from kube.config import ClusterConfig
from kube.events import EventRecorder
from kube.objects import Json, Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from ports.clock import SystemClock
from ports.fencing import OpenFence
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from sandbox.apiserver import ApiServer, InProcessTransport
from sandbox.apiserver.http_server import HttpServer
from workqueue.timers import Timers

T = TypeVar("T")

_CLOCK = SystemClock()
_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Simulated:
    """A running API server. `client` calls it as an administrator, in process; `server` injects faults and audits."""

    client: Client
    config: ClusterConfig
    server: ApiServer

    def define(self, resource: Resource, *, schema: Json | None = None) -> None:
        """Serve a custom resource with a status; without an OpenAPI schema any field is stored."""
        self.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(resource, schema))

    def create(self, resource: Resource, name: str, spec: Json, namespace: str = "default") -> Object:
        """Create a custom resource with a spec."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.client.create(resource, kind | {"metadata": {"name": name}, "spec": spec}, namespace)

    def reconcile_once(self, build: Build, name: str = "controllers") -> None:
        """Reconcile every object once in the calling thread, with the controllers that `build` creates."""
        stop, randomness = Stop(), SystemRandomness()
        factories: dict[str, SharedInformerFactory] = {}

        def informers(selector: str) -> SharedInformerFactory:
            if selector not in factories:
                tweak = partial(Selectors.and_labels, selector=selector)
                factories[selector] = SharedInformerFactory(self.client, _CLOCK, randomness, tweak=tweak)
            return factories[selector]

        recorder = EventRecorder(self.client, _CLOCK, randomness, name)
        runtime = new_runtime(
            client=self.client,
            recorder=recorder,
            timers=Timers(_CLOCK),
            informers=informers,
            fence=OpenFence(),
            registry=CollectorRegistry(),
        )
        controllers = tuple(build(runtime))
        recorder.start()
        try:
            for each in factories.values():
                each.start(stop)
                each.wait_for_handlers(stop)
            while any(controller.process_ready_item() for controller in controllers):
                pass
        finally:
            stop.set()
            for each in factories.values():
                each.shutdown()
            recorder.stop()

    @contextlib.contextmanager
    def running(self, build: Build, name: str = "controllers") -> Iterator[ControllerManager]:
        """Run the controllers as a program does, leader election included, while the block runs."""
        options = ProcessOptions(name=name, metrics_addr="127.0.0.1:0")
        manager = ControllerManager(options, self.config, {}, _CLOCK, SystemRandomness(), build=build)
        stop = Stop()
        thread = threading.Thread(target=manager.run, args=(stop,), name=name)
        thread.start()
        try:
            yield manager
        finally:
            stop.set()
            thread.join()

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig for kubectl, or for a program under test in a separate process."""
        context = {"cluster": "simulated", "user": "admin"}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": {"server": self.config.server}}],
            "users": [{"name": "admin", "user": {}}],
            "contexts": [{"name": "simulated", "context": context}],
            "current-context": "simulated",
        }
        path.write_text(json.dumps(tree), "utf-8")  # JSON is YAML


@contextlib.contextmanager
def simulated(*resources: Resource) -> Iterator[Simulated]:
    """Serve a Kubernetes API with these custom resources while the block runs."""
    server = ApiServer(_CLOCK, SystemRandomness())
    with HttpServer(server) as http:
        config = ClusterConfig(server=http.url, source="the simulated API server")
        found = Simulated(Client(InProcessTransport(server)), config, server)
        for each in resources:
            found.define(each)
        yield found


def definition_of(resource: Resource, schema: Json | None = None) -> Json:
    """The CustomResourceDefinition of a resource with a status, for `client.create`."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema or anything | {"properties": {"spec": anything, "status": anything}}},
    }
    spec = {
        "group": resource.group,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "names": names | {"singular": resource.kind.lower()},
        "versions": [version],
    }
    return {"metadata": {"name": str(resource)}, "spec": spec}


def eventually(probe: Callable[[], T], within: float = 10.0) -> T:
    """The first true answer of `probe`, called every 20 ms. Raises AssertionError with the last one after `within`
    s."""
    begun = _CLOCK.now()
    while not (found := probe()):
        assert _CLOCK.now() - begun < within, f"still {found!r} after {within} s"
        Stop().wait(_CLOCK, _PAUSE)
    return found


def conditions_of(status: Json) -> dict[str, tuple[str, str]]:
    """The conditions of a status by type: each with its status and its reason."""
    entries: Iterable[Json] = status.get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in entries}
