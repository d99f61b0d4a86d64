"""The operator in the sandbox with a minimal data plane, for tests of one kind, in one thread."""

import base64
from functools import cache
from typing import Any

from apis.crd import KINDS, definition
from kube.objects import Json, condition_of
from kube.resources import EVENTS, NAMESPACES, SECRETS, TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.operator import RESYNC, USER, Operator
from sandbox.apiserver import Faults
from sandbox.apiserver.faults import no_faults
from sandbox.world import World
from tests.apis.clusters import minimal

NAMESPACE = "lab"


class SimpleWorld:
    """A world, by default without nodes, and the whole operator; TidbClusters are paused, so that nothing runs."""

    def __init__(self, resource: Resource, faults: Faults = no_faults, **options: Any) -> None:
        """`resource`: the subject of the test; `options` are passed to World."""
        self.resource = resource
        self.clock = FakeClock()
        given = {"nodes": (), "crds": _definitions()} | options
        self.world = World(self.clock, SeededRandomness(1), faults=faults, **given)
        self.admin = self.world.client()
        self.operator = self._started(1)
        self.admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

    def stop(self) -> None:
        """End the world."""
        self.world.stop()

    def restart(self, at: int | None = None) -> None:
        """Replace the process by a new one, which remembers nothing; `at`: see `Operator`."""
        self.operator = self._started(2, at=at)

    def use(self, **options: Any) -> None:
        """Replace the process by a new one, made with other options of `Operator`."""
        self.operator = self._started(1, **options)

    def _started(self, seed: int, **options: Any) -> Operator:
        """A process whose informers deliver the objects of the kind again from time to time, as all informers do."""
        operator = Operator(self.world, self.clock, seed, **options)

        def resync() -> None:
            operator.caches[self.resource].resync()
            operator.timers.call_at(self.clock.now() + RESYNC, resync)

        operator.timers.call_at(self.clock.now() + RESYNC, resync)
        return operator

    def run(self, seconds: float = 1.0) -> None:
        """Run the operator for this many seconds, and then until it is idle."""
        self.operator.work()
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.world.advance(min(1.0, end - self.clock.now()))
            self.operator.work()

    def add_secret(self, name: str, **keys: str) -> None:
        """A Secret; `_` in a key stands for a dot."""
        data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in keys.items()}
        self.admin.create(SECRETS, {"metadata": {"name": name}, "data": data}, NAMESPACE)

    def add_cluster(self, name: str = "basic", **spec: Any) -> None:
        """A TidbCluster without objects."""
        body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": name}}
        whole = {key: value for key, value in (minimal() | {"paused": True} | spec).items() if value is not None}
        self.admin.create(TIDB_CLUSTERS, body | {"spec": whole}, NAMESPACE)

    def add(self, name: str = "demo", annotations: dict[str, str] | None = None, **spec: Any) -> None:
        """An object of the kind; the operator sees it."""
        body = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        metadata = {"name": name, "annotations": annotations or {}}
        self.admin.create(self.resource, body | {"metadata": metadata, "spec": spec}, NAMESPACE)
        self.run()

    def change(self, name: str = "demo", **spec: Any) -> None:
        """Merge into the spec; None removes."""
        self.admin.patch(self.resource, name, NAMESPACE, {"spec": spec})
        self.run()

    def annotate(self, name: str = "demo", **annotations: str) -> None:
        """Set annotations of `tidb.pingcap.com/`."""
        given = {f"tidb.pingcap.com/{key}": value for key, value in annotations.items()}
        self.admin.patch(self.resource, name, NAMESPACE, {"metadata": {"annotations": given}})
        self.run()

    def status(self, name: str = "demo") -> Json:
        """The status."""
        found: Json = self.admin.get(self.resource, name, NAMESPACE).decode().get("status") or {}
        return found

    def condition(self, kind: str = "Progressing", name: str = "demo") -> tuple[str, str, str]:
        """Status, reason and message of a condition; empty ones when there is none."""
        found = condition_of(self.status(name).get("conditions") or (), kind)
        return str(found.get("status") or ""), str(found.get("reason") or ""), str(found.get("message") or "")

    def get(self, resource: Resource, name: str) -> Json:
        """An object."""
        return self.admin.get(resource, name, NAMESPACE).decode()

    def names(self, resource: Resource) -> list[str]:
        """The names of all objects of a resource."""
        return [each.metadata.name for each in self.admin.list_page(resource, NAMESPACE).items]

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of all events about objects of the kind."""
        found = [each.decode() for each in self.admin.list_page(EVENTS, NAMESPACE).items]
        mine = [each for each in found if each["involvedObject"]["kind"] == self.resource.kind]
        return [(each["reason"], each["message"]) for each in mine]

    def forget(self) -> None:
        """Reset the count of requests."""
        self.world.server.audit.clear()

    def requests(self) -> list[str]:
        """The operator's requests to the API server since `forget`, except Leases: `verb resource name`."""
        calls = (entry.call for entry in self.world.server.audit.recent())
        return [f"{call.verb} {call.resource} {call.name}" for call in calls if call.user == USER]

    def resyncs(self, count: int = 5) -> None:
        """Let this many resyncs pass."""
        self.run(count * RESYNC + 1)


@cache
def _definitions() -> tuple[Json, ...]:
    """Made from the models, which takes a while."""
    return tuple(definition(kind) for kind in KINDS)
