"""A cluster as v1.6 leaves it when it is stopped in the middle of its work (lifecycle.md 7 to 14).

The objects equal v1.6's, as `tests/member/test_recordings.py` shows, and are written as v1.6 writes them.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from cli.fields.probe import desired_objects
from controller_manager.observing import comparable
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.components import workload
from member.labels import LAST_APPLIED, OWNER_GENERATION, START_SCRIPT_OPTIONS
from ports.clock import FakeClock
from ports.transport import Request
from rehearsal.operator import Operator
from sandbox.stamps import stamp
from tests.definitions_of_v16 import definitions_of_v16
from tests.member.recordings import DISCOVERY_IMAGE
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.takeover.left_by_v16 import Left, as_v16_left_it
from tests.takeover.observer import planned_writes

NAME = "basic"
EVICT = "evict-leader-scheduler"


class Halfway:
    """The cluster `basic` of three PD, three TiKV and two TiDB, or of other numbers, as v1.6 leaves it at rest.

    What it was about to do is then written by the methods, as it would have.
    """

    def __init__(self, clock: FakeClock, spec: Json | None = None, **replicas: int) -> None:
        """`spec`: merged into the cluster's spec, part by part."""
        cluster = sample(NAME)
        for component, count in ({"pd": 3, "tikv": 3, "tidb": 2} | replicas).items():
            cluster["spec"][component]["replicas"] = count
        for key, value in (spec or {}).items():
            there = cluster["spec"].get(key)
            cluster["spec"][key] = there | value if isinstance(there, dict) else value
        self.left = Left(as_v16_makes(cluster), clock, crds=definitions_of_v16())
        self.world: OperatorWorld = self.left.world
        self.admin = self.world.admin
        self.set_status(_told_by_an_observer(self.world))

    # v1.6's records

    def set_status(self, status: Json) -> None:
        """Merge into the status."""
        self.admin.patch(TIDB_CLUSTERS, NAME, NAMESPACE, {"status": status})

    def update(self, component: str, edit: Callable[[Json], object]) -> None:
        """Update a StatefulSet as v1.6 does: the record is the resulting spec (objects.md 11.5)."""
        body = self._edited(component, edit)
        body["metadata"]["annotations"] |= {OWNER_GENERATION: "2"}
        self.admin.replace(STATEFUL_SETS, body["metadata"]["name"], NAMESPACE, body)

    def note_as_v10(self, component: str, *, is_recorded: bool) -> None:
        """Record the contents in the pod template, too, as TiDB Operator v1.0 did, with pods that run it.

        `is_recorded`: a later version has written the StatefulSet since (objects.md 11.5).
        """
        pods = self.world.get(STATEFUL_SETS, f"{NAME}-{component}")["spec"]["replicas"]

        def note(spec: Json) -> None:
            spec["template"]["metadata"].setdefault("annotations", {})[LAST_APPLIED] = "{}"

        def to(partition: int) -> Callable[[Json], None]:
            return lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=partition)

        body = self._edited(component, to(0))
        note(body["spec"])
        self.admin.replace(STATEFUL_SETS, body["metadata"]["name"], NAMESPACE, body)
        for _ in range(pods):
            self.world.world.run_until_settled()
            self.world.world.advance(30.0)
        self.update(component, to(pods))
        if is_recorded:
            self.update(component, note)
        self.world.world.run_until_settled()

    def remake(self, component: str, edit: Callable[[Json], object]) -> None:
        """Delete a StatefulSet around its pods, and recreate it, as v1.6 does (lifecycle.md 10.4)."""
        body = self._edited(component, edit)
        meta = {key: body["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")}
        self.admin.delete(STATEFUL_SETS, meta["name"], NAMESPACE, propagation="Orphan")
        self.world.world.run_until_settled()
        self.admin.create(STATEFUL_SETS, {"metadata": meta, "spec": body["spec"]}, NAMESPACE)
        self.world.world.run_until_settled()

    def _edited(self, component: str, edit: Callable[[Json], object]) -> Json:
        body = self.world.get(STATEFUL_SETS, f"{NAME}-{component}")
        record = json.loads(body["metadata"]["annotations"][LAST_APPLIED])
        for spec in (body["spec"], record):
            edit(spec)
        body["metadata"]["annotations"] |= {LAST_APPLIED: json.dumps(record)}
        return body

    def annotate(self, resource: Resource, name: str, annotations: Json) -> None:
        """Annotate an object; None removes."""
        self.admin.patch(resource, name, NAMESPACE, {"metadata": {"annotations": annotations}})

    def defer(self, claim: str) -> None:
        """Mark a claim of a pod that is scaled in (lifecycle.md 8.3)."""
        marks = {"tidb.pingcap.com/pvc-defer-deleting": self.now(), "tidb.pingcap.com/scale-in-time": self.now()}
        self.annotate(PERSISTENT_VOLUME_CLAIMS, claim, marks)

    def ask_pd(self, method: str, path: str, body: Any = None) -> bytes:
        """Send PD a request."""
        return self.ask(method, f"http://{NAME}-pd.{NAMESPACE}:2379/pd/api/v1/{path}", body)

    def ask(self, method: str, url: str, body: Any = None) -> bytes:
        """Send a server a request."""
        text = json.dumps(body).encode() if body is not None else None
        return self.world.world.data_plane_transport().request(Request(method, url, {}, text)).body

    def evict(self, store: str) -> None:
        """Let PD move the leaders off a store."""
        self.ask_pd("POST", "schedulers", {"name": EVICT, "store_id": int(store)})

    # existing objects

    def now(self) -> str:
        """The time, as v1.6 writes it."""
        return stamp(self.world.clock.wall())

    def annotations(self, resource: Resource, name: str) -> set[str]:
        """The keys of an object's annotations."""
        return set(self.world.get(resource, name)["metadata"].get("annotations") or ())

    def store(self, pod: str) -> str:
        """The id of a pod's store."""
        stores = self.world.cluster()["status"][pod.split("-")[1]]["stores"].values()
        return next(str(each["id"]) for each in stores if each["podName"] == pod)

    def member(self, pod: str) -> str:
        """The id of a pod's member."""
        found: str = self.world.cluster()["status"]["pd"]["members"][pod]["id"]
        return found

    def evicted(self) -> set[str]:
        """The stores that PD moves leaders off."""
        if EVICT not in json.loads(self.ask_pd("GET", "schedulers")):
            return set()
        return set(json.loads(self.ask_pd("GET", f"scheduler-config/{EVICT}/list"))["store-id-ranges"])

    def claims(self) -> dict[str, str]:
        """UIDs by name."""
        return {each.metadata.name: each.metadata.uid for each in self.admin.list_page(PERSISTENT_VOLUME_CLAIMS).items}

    def wanted_by_v16(self) -> dict[str, Json]:
        """The objects that v1.6 would create for the cluster as it is now, by kind and name."""
        body = self.world.cluster()
        meta = {"name": NAME, "namespace": NAMESPACE}
        items = as_v16_makes({key: body[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": meta})
        (tc,) = self.left.clusters
        return {f"{item['kind']}/{item['metadata']['name']}": as_v16_left_it(item, item, tc) for item in items[1:]}

    def take_over(self, within: float = 300.0) -> set[str]:
        """Observe, which changes nothing, then work until all is done; returns the pods recreated meanwhile."""
        self.world.world.settle()
        self.world.forget()
        pods, before = self.left.pods(), self._objects()
        planned_writes(self.world, 0.5)
        assert (pods, before) == ({name: self.left.pods().get(name) for name in pods}, self._objects())
        self.world.run_until_ready(within=within)
        now = self.left.pods()
        return {name for name, uid in now.items() if pods.get(name, uid) != uid}

    def _objects(self) -> list[Json | None]:
        return [comparable(each) for each in self.left.objects().values()]


def as_v16_makes(cluster: Json, namespace: str = NAMESPACE) -> list[Json]:
    """The objects of a TidbCluster without our operator's own notes."""
    named = cluster | {"metadata": cluster["metadata"] | {"name": NAME, "namespace": namespace}}
    tc = with_defaults(msgspec.convert(named, TidbCluster))
    persisted = named | {"spec": named["spec"] | {"enablePVReclaim": False, "tlsCluster": {}}}
    return [persisted, *(_as_v16_makes(tc, made) for made in desired_objects(tc, DISCOVERY_IMAGE))]


def _as_v16_makes(tc: TidbCluster, made: Json) -> Json:
    if made["kind"] == "StatefulSet":
        made = workload(made["metadata"]["name"].removeprefix(f"{NAME}-")).as_built_by_v16(tc, made)
    # a digest of other texts than ours
    text = re.sub(r"(?<=-)([0-9a-f]{7})(?=\")", lambda found: found[0][::-1], json.dumps(made))
    tree: Json = json.loads(text)
    (tree["metadata"].get("annotations") or {}).pop(START_SCRIPT_OPTIONS, None)
    if tree["kind"] == "ConfigMap" and "startup-script" in tree["data"]:
        tree["data"]["startup-script"] = "<start script>"
    return tree


def _told_by_an_observer(world: OperatorWorld) -> Json:
    """The status of a cluster at rest, without the conditions that are ours."""
    written: list[PlannedWrite] = []
    world.operator = Operator(
        world.world,
        world.clock,
        2,
        kubernetes=lambda transport: DryRunTransport(transport, written.append),
        dataplane=lambda transport: ReadOnlyTransport(transport, lambda _method, _url: None),
    )
    world.run(1.0)
    world.restart()
    of_clusters = (each.after for each in written if each.resource == TIDB_CLUSTERS.plural and each.after)
    statuses = [each["status"] for each in of_clusters if each.get("status")]
    status: Json = statuses[-1]
    return status | {"conditions": [each for each in status["conditions"] if each["type"] == "Ready"]}
