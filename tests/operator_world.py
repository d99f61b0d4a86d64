"""The operator in the sandbox, both in one thread on a clock that is stepped: one seed, one run.

The operator is `rehearsal.operator`; here is what tests ask of it and of the world around it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from apis.crd import KINDS, TIDB_CLUSTER, definition
from kube.objects import Json, Object
from kube.resources import EVENTS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.context import Settings
from ports.clock import FakeClock
from ports.product import EVENT_SOURCE
from ports.randomness import SeededRandomness
from rehearsal.operator import CLUSTER_SCOPED, SETTINGS, Operator
from rehearsal.operator import USER as OPERATOR
from rehearsal.world import COMMANDS, PROGRAMS
from sandbox.actor_system import NeverSettles
from sandbox.apiserver import Faults
from sandbox.apiserver.faults import no_faults
from sandbox.dataplane.pd.stores import Heartbeat, Store
from sandbox.dataplane.server_program import ServerProgram
from sandbox.directory import CLUSTER_DOMAIN
from sandbox.kubelet.nodes import NodeSpec
from sandbox.world import World
from scheduler.app import COMPONENT as TIDB_SCHEDULER
from scheduler.app import make_handler as make_extender

__all__ = ["NAMESPACE", "OPERATOR", "SAMPLES", "OperatorWorld", "sample"]

NAMESPACE = "default"
SAMPLES = Path(__file__).resolve().parents[1] / "manifests" / "samples"


class OperatorWorld:
    """A world, the operator in it, and common questions of tests about both."""

    CLUSTERS = TIDB_CLUSTERS
    """The kind of the clusters in question."""

    def __init__(
        self,
        *,
        seed: int = 1,
        status_subresource: bool = True,
        faults: Faults = no_faults,
        clock: FakeClock | None = None,
        nodes: Iterable[NodeSpec] | None = None,
        settings: Settings = SETTINGS,
        permitted: Collection[Resource] = CLUSTER_SCOPED,
        crd: Json | None = None,
        crds: Sequence[Json] = (),
        servers: Iterable[ServerProgram] = (),
        domain: str = CLUSTER_DOMAIN,
        beside: "OperatorWorld | None" = None,
    ) -> None:
        """`crd`: another definition of TidbClusters; `crds`: the definitions of all kinds; the rest: see `World`."""
        self.clock: FakeClock = clock or (beside.clock if beside else FakeClock())
        self.world: World = World(
            self.clock,
            SeededRandomness(seed),
            programs=PROGRAMS,
            commands=COMMANDS,
            servers=servers,
            crds=crds or definitions(crd, status_subresource),
            nodes=nodes,
            faults=faults,
            domain=domain,
            beside=beside.world if beside else None,
            extenders={TIDB_SCHEDULER: make_extender},
        )
        self.admin = self.world.client()
        self._settings = settings
        self.defects: list[str] = []
        """The unexpected exceptions of stages and syncs."""
        self.operator = Operator(
            self.world, self.clock, seed, settings=settings, permitted=permitted, on_defect=self._on_defect
        )

    def _on_defect(self, where: str, error: Exception) -> None:
        self.defects.append(f"{where} raised {type(error).__name__}: {error}")

    def restart(self, settings: Settings | None = None) -> None:
        """Replace the process of the operator by a new one, which remembers nothing; `settings`: new ones."""
        self._settings = settings or self._settings
        self.operator = Operator(self.world, self.clock, 2, settings=self._settings, on_defect=self._on_defect)

    def stop(self) -> None:
        """End the world."""
        self.world.stop()

    # Time

    def run_until(self, condition: Callable[[], bool], within: float = 60.0) -> None:
        """Run world and operator until `condition` holds. Raises NeverSettles after `within` seconds."""
        end = self.clock.now() + within
        while True:
            self.operator.work()
            if condition():
                return
            if self.clock.now() >= end:
                raise NeverSettles(f"the condition did not hold within {within} s; {self.progressing}")
            self.operator.let_pass(end)

    def run(self, seconds: float) -> None:
        """Run world and operator for some time."""
        end = self.clock.now() + seconds
        self.run_until(lambda: self.clock.now() >= end, seconds)

    def run_until_ready(self, name: str = "basic", within: float = 60.0) -> None:
        """Run them until the cluster is Ready and no work is left."""
        self.run_until(lambda: self.is_ready(name) and self.reason(name) == "Done", within)

    # Actions of users

    def apply(self, cluster: Json) -> None:
        """Create a TidbCluster."""
        self.admin.create(self.CLUSTERS, cluster, NAMESPACE)

    def change(self, name: str = "basic", /, **spec: Any) -> None:
        """Merge into the spec of a TidbCluster; None removes."""
        self.admin.patch(self.CLUSTERS, name, NAMESPACE, {"spec": spec})

    def register_store(self, address: str, labels: Mapping[str, str], name: str = "basic") -> None:
        """A store that PD hears of once: Up now, Down when it was silent for long enough."""
        pd, now, wall = self.world.data_plane.pd_cluster(NAMESPACE, name), self.clock.now(), self.clock.wall()
        assert pd is not None
        beat = Heartbeat(now, wall.timestamp())
        version = pd.stores.cluster_version
        store = Store(pd.stores.allocate(), address, version, beat.wall, beat, labels=dict(labels))
        pd.stores.register(store, now)

    # observations

    def get(self, resource: Resource, name: str) -> Json:
        """An object as the API server has it."""
        return self.admin.get(resource, name, NAMESPACE).decode()

    def exists(self, resource: Resource, name: str) -> bool:
        """True if there is such an object."""
        return self.admin.find(resource, name, NAMESPACE) is not None

    def every(self, resource: Resource) -> list[Json]:
        """All objects of a kind."""
        return [item.decode() for item in self.admin.list_page(resource, NAMESPACE).items]

    def cluster(self, name: str = "basic") -> Json:
        """The TidbCluster."""
        return self.get(self.CLUSTERS, name)

    def condition(self, kind: str, name: str = "basic") -> Json:
        """A condition of the TidbCluster, empty when it has none of that type."""
        conditions = (self.cluster(name).get("status") or {}).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def is_ready(self, name: str = "basic") -> bool:
        """True if its Ready condition is True."""
        return self.condition("Ready", name).get("status") == "True"

    def reason(self, name: str = "basic") -> str:
        """Why it is or is not progressing."""
        return str(self.condition("Progressing", name).get("reason", ""))

    @property
    def progressing(self) -> str:
        """The Progressing condition of every cluster, for messages."""
        found = {each.metadata.name: self.condition("Progressing", each.metadata.name) for each in self._clusters()}
        return "; ".join(f"{name}: {each.get('reason')}: {each.get('message')}" for name, each in found.items())

    def names(self) -> list[str]:
        """The names of all TidbClusters."""
        return [each.metadata.name for each in self._clusters()]

    def _clusters(self) -> list[Object]:
        return self.admin.list_page(self.CLUSTERS, NAMESPACE).items

    def replicas(self, component: str, name: str = "basic") -> int:
        """The replicas that the StatefulSet requests."""
        return int(self.get(STATEFUL_SETS, f"{name}-{component}")["spec"]["replicas"])

    def events(self, reason: str = "") -> list[Json]:
        """The events that the operator recorded, oldest first."""
        found = [each for each in self.every(EVENTS) if (each.get("source") or {}).get("component") == EVENT_SOURCE]
        found.sort(key=lambda each: each["metadata"]["name"].rpartition(".")[2])
        return [each for each in found if not reason or each["reason"] == reason]

    def messages(self, reason: str) -> list[str]:
        """The messages of the events with a reason, oldest first; simultaneous ones are in one event."""
        return [message for event in self.events(reason) for message in event["message"].split("; ")]

    def asked_replicas(self, component: str, name: str = "basic") -> list[int]:
        """The replicas that the operator gave the StatefulSet since `forget`, one write after another."""
        return [
            msgspec.json.decode(call.request.body or b"{}")["spec"]["replicas"]
            for call in (entry.call for entry in self.world.server.audit.recent())
            if (call.user, call.resource, call.name) == (OPERATOR, "statefulsets.apps", f"{name}-{component}")
            and b'"replicas"' in (call.request.body or b"")
        ]

    def writes(self) -> list[str]:
        """The operator's writes to the API server since `forget`: `verb resource[/subresource] name`, in order."""
        return [
            f"{call.verb} {call.resource}{'/' if call.subresource else ''}{call.subresource} {call.name}"
            for call in (entry.call for entry in self.world.server.audit.recent())
            if call.user == OPERATOR and call.is_write
        ]

    def reads(self) -> list[str]:
        """The operator's live reads since `forget`: `verb resource name`, in order."""
        return [
            f"{call.verb} {call.resource} {call.name}"
            for call in (entry.call for entry in self.world.server.audit.recent())
            if call.user == OPERATOR and not call.is_write
        ]

    def forget(self) -> None:
        """Begin to count requests again."""
        self.world.server.audit.clear()
        self.operator.dataplane.requests.clear()


@cache
def _definition(status_subresource: bool) -> Json:
    """The definition of TidbCluster; cached, because generating it from the models is slow."""
    return definition(TIDB_CLUSTER, status_subresource=status_subresource)


@cache
def _others() -> tuple[Json, ...]:
    """The definitions of the other kinds that the operator watches."""
    return tuple(definition(kind) for kind in KINDS if kind is not TIDB_CLUSTER)


def definitions(crd: Json | None = None, status_subresource: bool = True) -> list[Json]:
    """The definitions of all kinds that the operator watches; `crd`: another one of TidbClusters."""
    return [crd or _definition(status_subresource), *_others()]


def sample(name: str) -> Json:
    """A TidbCluster of manifests/samples."""
    body: Json = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return body
