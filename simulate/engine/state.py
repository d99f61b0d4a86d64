"""The truth at one instant, past every cache and fault, for the invariants."""

import base64
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from apis.components import component_type
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from member.labels import INSTANCE
from sandbox.apiserver.storage import Stored
from sandbox.conditions import holds
from sandbox.controllers.stateful_set_plan import Snapshot
from sandbox.dataplane.membership import StoreData
from sandbox.dataplane.pd.cluster import Member, PdCluster
from sandbox.dataplane.pd.process import PdData
from sandbox.dataplane.pd.stores import NodeState, Store
from sandbox.dataplane.pump import OFFLINE, PumpData, pump_nodes
from sandbox.dataplane.ticdc.book import Book
from sandbox.dataplane.ticdc.process import TicdcProcess
from sandbox.world import World
from simulate.engine.calls import Call, Port
from simulate.engine.components import cluster_of, managed_components
from simulate.engine.worlds import NAME, NAMESPACE

NEVER = 10_000
"""A partition above all ordinals."""

_FORGIVEN = 600.0
"""Seconds after a crash in which Kubernetes still counts it."""

_UPGRADING = b"/tidb/server/global_state"
"""The key under which TiDB records that DDL is paused."""


@dataclass(slots=True)
class _Answers:
    """What was read at one version of the storage: the judge asks for the same objects again and again."""

    as_of: tuple[int, int]
    """See `Storage.as_of`."""
    objects: dict[tuple[Resource, str], Json | None] = field(default_factory=dict)
    lists: dict[Resource, list[Json]] = field(default_factory=dict)
    pods: dict[str, dict[int, Json]] | None = None
    stateful_sets: dict[str, Json] | None = None
    workloads: dict[str, Json | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture of TiCDC, and the number of its tables."""

    id: str
    tables: int
    stopping: bool


class State:
    """Reads the world around one TidbCluster. Trees are shared: readers must not change them."""

    def __init__(
        self, world: World, namespace: str = NAMESPACE, name: str = NAME, components: Sequence[str] = ()
    ) -> None:
        """`components` are by default a TidbCluster's."""
        self.components = tuple(components or managed_components())
        self.namespace = namespace
        self.name = name
        self._world = world
        self._trees: dict[tuple[Resource, str], tuple[int, Json]] = {}
        self._answers = _Answers((-1, -1))
        self._members: dict[int, str] = {}
        self.pd: PdCluster | None = None
        """The PD cluster that `look` found last, even while no member runs; None before the first."""
        self.founded: set[int] = set()
        """The ids of all PD clusters so far."""
        self.unready: dict[str, float] = {}
        """Since when known pods have not been stably Ready, as `watch` saw it."""
        self._crashed: dict[tuple[str, str], float] = {}
        """When `watch` saw the end of a container, by pod and Kubernetes' time of it."""
        self.evicting_since: dict[int, float] = {}
        """Since when PD has been moving leaders off stores, by the monotonic clock, as `watch` saw it."""
        self.evicted_by_others: frozenset[str] = frozenset()
        """The pods whose leaders an administrator lets PD evict."""
        self.evicted_for_us: set[int] = set()
        """The stores whose eviction the operator has ended."""
        self.stopping_since: dict[str, float] = {}
        """Since when captures of TiCDC get no more tables, by id, as `watch` saw it."""
        self.unsettled = ""
        """The last removed PD member, until all others were healthy at one time, as `watch` saw it."""

    def watch(self) -> None:
        """Record the pods' readiness and the PD members."""
        self._watch_members()
        evicting = self.pd.stores.evicting if self.pd else ()
        self.evicting_since = {each: self.evicting_since.get(each, self.now) for each in evicting}
        stopping = [capture.id for capture in self.captures.values() if capture.stopping]
        self.stopping_since = {each: self.stopping_since.get(each, self.now) for each in stopping}
        sets, all_pods = self.stateful_sets, self.all_pods
        for component in self.components:
            pods = all_pods[component]
            for ordinal in {*pods, *kept_ordinals(sets.get(component))}:
                name = self.pod_name(component, ordinal)
                pod = pods.get(ordinal)
                if pod is not None and self._is_ready_for_good(pod, component):
                    self.unready.pop(name, None)
                else:
                    self.unready.setdefault(name, self.now)

    def _is_ready_for_good(self, pod: Json, component: str) -> bool:
        """True if a pod is Ready, and neither ending nor between two crashes."""
        ends = pod["metadata"].get("deletionTimestamp")
        return is_ready(pod) and not ends and not self._has_crashed_lately(pod, component)

    def _has_crashed_lately(self, pod: Json, part: str) -> bool:
        """True if a pod may run only between two crashes; without a probe it is then Ready."""
        containers = (status for status in pod["status"].get("containerStatuses") or () if status["name"] == part)
        ends = (container.get("lastState", {}).get("terminated", {}).get("finishedAt", "") for container in containers)
        end, name = next(ends, ""), pod["metadata"]["name"]
        return bool(end) and self.now - self._crashed.setdefault((name, end), self.now) < _FORGIVEN

    def _watch_members(self) -> None:
        there = {member.id: member.name for member in self.members}
        gone = [name or str(id_) for id_, name in self._members.items() if id_ not in there]
        self._members = there
        if all(member.healthy for member in self.members):
            self.unsettled = ""
        elif gone:
            self.unsettled = gone[-1]

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self._world.clock.now()

    @property
    def wall(self) -> float:
        """The time of day, in seconds since 1970."""
        return self._world.clock.wall().timestamp()

    def look(self) -> Hashable:
        """Find PD; the result changes with everything visible here, but not with the time."""
        self.pd = pd = self._find_pd() or self.pd
        as_of = self._world.server.storage.as_of
        if pd is None:
            return as_of
        self.founded.add(pd.id)
        health = pd.health()
        stores = tuple((store.id, store.node_state, store.died_at, store.leaders) for store in pd.stores.all())
        leader, evicting = pd.leader_with(health), frozenset(pd.stores.evicting)
        captures = tuple(capture.id for capture in self.captures.values() if capture.stopping)
        return as_of, tuple(health.items()), leader and leader.id, stores, evicting, captures, self.ddl_paused

    def _find_pd(self) -> PdCluster | None:
        """The PD cluster of the running members, or of the cluster that this one joins."""
        found = self._world.data_plane.pd_cluster(self.namespace, self.name)
        joins = self.joins if found is None else ""
        return self._world.data_plane.pd_cluster(*joins.split("/")) if joins else found

    def all(self, resource: Resource) -> list[Json]:
        """The objects of the namespace, or cluster-scoped ones, by name."""
        lists = self._current_answers().lists
        found = lists.get(resource)
        if found is None:
            namespace = self.namespace if resource.namespaced else ""
            stored = self._world.server.storage.objects(str(resource), namespace)
            found = lists[resource] = [self._tree(resource, each) for each in stored]
        return list(found)

    def get(self, resource: Resource, name: str) -> Json | None:
        """One object, or None."""
        objects = self._current_answers().objects
        try:
            return objects[resource, name]
        except KeyError:
            stored = self._world.server.storage.get(
                str(resource), f"{self.namespace}/{name}" if resource.namespaced else name
            )
            found = objects[resource, name] = self._tree(resource, stored) if stored else None
            return found

    def _current_answers(self) -> _Answers:
        as_of = self._world.server.storage.as_of
        if self._answers.as_of != as_of:
            self._answers = _Answers(as_of)
        return self._answers

    def _tree(self, resource: Resource, stored: Stored) -> Json:
        known = self._trees.get((resource, stored.key))
        if known is not None and known[0] == stored.version:
            return known[1]
        tree = stored.tree()
        self._trees[resource, stored.key] = stored.version, tree
        return tree

    @property
    def key(self) -> str:
        """The cluster as `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def concerns(self, call: Call) -> bool:
        """True if a write is about the cluster, its objects, its PD or its servers.

        Cluster-scoped objects belong to it if a sync of the cluster writes them.
        """
        if call.port is Port.DATA_PLANE:
            return self._serves_at(urlsplit(call.request.url).hostname or "")
        target = call.target
        if not target.namespace:
            return cluster_of(call.key) == self.key
        if target.namespace != self.namespace:
            return False
        if target.resource == str(TIDB_CLUSTERS):
            return target.name == self.name
        stored = self._world.server.storage.get(target.resource, target.key)
        labels = ((stored.tree() if stored else call.body()).get("metadata") or {}).get("labels") or {}
        return bool(labels.get(INSTANCE) == self.name if INSTANCE in labels else cluster_of(call.key) == self.key)

    def _serves_at(self, host: str) -> bool:
        """True if a host is a pod or Service of the cluster, or a PD that it shares."""
        *_, workload, namespace = host.partition(".svc")[0].split(".")[-2:]
        cluster, is_pd, _ = workload.partition("-pd")
        if is_pd:
            return self.pd is not None and self._world.data_plane.pd_cluster(namespace, cluster) is self.pd
        own = any(workload.startswith(f"{self.name}-{component}") for component in managed_components())
        return own and namespace == self.namespace

    # Kubernetes

    @property
    def cluster(self) -> Json | None:
        """The TidbCluster."""
        return self.get(TIDB_CLUSTERS, self.name)

    @property
    def joins(self) -> str:
        """The cluster `namespace/name` that this one joins, or empty."""
        return _joined_by(self.cluster)

    @property
    def joined(self) -> list[Json]:
        """The TidbClusters joined with this one, including itself."""
        stored = self._world.server.storage.objects(str(TIDB_CLUSTERS), "")
        clusters = [self._tree(TIDB_CLUSTERS, each) for each in stored]
        hosts = {self.key, self.joins}
        return [cluster for cluster in clusters if _key_of(cluster) in hosts or _joined_by(cluster) == self.key]

    def pod_name(self, component: str, ordinal: int) -> str:
        """The name of a pod of the cluster."""
        return f"{self.name}-{component}-{ordinal}"

    def stateful_set(self, component: str) -> Json | None:
        """The StatefulSet of a component, a native or an Advanced one."""
        return self.workload(f"{self.name}-{component}")

    @property
    def stateful_sets(self) -> Mapping[str, Json]:
        """The StatefulSets that exist, by component, in the order of the table."""
        answers = self._current_answers()
        if answers.stateful_sets is None:
            found = ((component, self.stateful_set(component)) for component in self.components)
            answers.stateful_sets = {component: live for component, live in found if live is not None}
        return answers.stateful_sets

    def workload(self, name: str) -> Json | None:
        """A native or Advanced StatefulSet."""
        workloads = self._current_answers().workloads
        if name not in workloads:
            workloads[name] = self.get(STATEFUL_SETS, name) or self.get(ADVANCED_STATEFUL_SETS, name)
        return workloads[name]

    def pods(self, component: str) -> dict[int, Json]:
        """The pods of a component by ordinal."""
        return self.all_pods.get(component, {})

    @property
    def all_pods(self) -> Mapping[str, dict[int, Json]]:
        """The pods of each component by ordinal."""
        answers = self._current_answers()
        if answers.pods is None:
            answers.pods = self._pods_by_component()
        return answers.pods

    def _pods_by_component(self) -> dict[str, dict[int, Json]]:
        found: dict[str, dict[int, Json]] = {component: {} for component in self.components}
        for pod in self.all(PODS):
            name, _, ordinal = pod["metadata"]["name"].rpartition("-")
            component = name.removeprefix(f"{self.name}-")
            if component in found and ordinal.isdecimal():
                found[component][int(ordinal)] = pod
        return found

    def claims(self) -> list[Json]:
        """The PVCs."""
        return self.all(PERSISTENT_VOLUME_CLAIMS)

    def serves(self, component: str, ordinal: int) -> bool:
        """True if a pod's server listens on its health port."""
        row = component_type(component)
        running = self._world.data_plane.running(self.namespace, self.pod_name(component, ordinal))
        return any(each.process.listens(row.ports[row.metrics_port]) for each in running)

    @property
    def cut_short(self) -> list[str]:
        """The pods whose hooks held their stop until Kubernetes killed them."""
        killed = (each.split("/") for each in self._world.kubelet.cut_short)
        return [pod for namespace, pod in killed if namespace == self.namespace and pod.startswith(f"{self.name}-")]

    @property
    def captures(self) -> dict[str, Capture]:
        """The running captures of TiCDC by pod."""
        if self.pd is None or not self.pods("ticdc"):
            return {}
        book = Book(self.pd.etcd, self.now)
        known, tables, found = book.captures(), book.assigned(), {}
        for ordinal in self.pods("ticdc"):
            pod = self.pod_name("ticdc", ordinal)
            for running in self._world.data_plane.running(self.namespace, pod):
                own = known.get(running.process.capture) if isinstance(running.process, TicdcProcess) else None
                if own is not None:
                    found[pod] = Capture(own.id, len(tables.get(own.id, ())), own.stopping)
        return found

    # PD and its stores

    @property
    def members(self) -> list[Member]:
        """PD's members."""
        return list(self.pd.members.values()) if self.pd else []

    @property
    def leader(self) -> str:
        """The pod of PD's leader, or empty."""
        member = self.pd.leader if self.pd else None
        return pod_of_member(member) if member else ""

    @property
    def stores(self) -> list[Store]:
        """The stores that are not Tombstone."""
        return [store for store in self.all_stores if store.node_state is not NodeState.REMOVED]

    @property
    def all_stores(self) -> list[Store]:
        """The stores, Tombstones included."""
        return self.pd.stores.all() if self.pd else []

    @property
    def dead_stores(self) -> set[int]:
        """The stores without a serving process, and those whose pod is being deleted, whatever PD reports."""
        pods = (pod["metadata"] for pod in self.pods("tikv").values())
        leaving = {meta["name"] for meta in pods if meta.get("deletionTimestamp")}
        return {
            store.id
            for store in self.all_stores
            if store.died_at is not None
            or pod_of(store) in leaving
            or self.store_state(store) in ("Disconnected", "Down", "Tombstone")
        }

    @property
    def pd_repeats_answers(self) -> bool:
        """True while PD may answer as it did long ago."""
        return self._world.data_plane.network.repeats_answers(f"{self.key}-pd-*")

    def store_state(self, store: Store) -> str:
        """Up, Disconnected, Down, Offline or Tombstone, whatever a new leader of PD reports."""
        return self.pd.stores.true_state(store, self.now) if self.pd else ""

    def store(self, store_id: int) -> Store | None:
        """A store that is not Tombstone."""
        return next((each for each in self.stores if each.id == store_id), None)

    def stores_of(self, pod: str) -> list[Store]:
        """The stores at a pod's address that are not Tombstone."""
        return [store for store in self.stores if pod_of(store) == pod]

    @property
    def ddl_paused(self) -> bool:
        """True if TiDB pauses users' DDL until the end of an upgrade."""
        return self.pd is not None and _UPGRADING in self.pd.etcd.keys

    @property
    def pump_nodes(self) -> list[Json]:
        """The registered Pump nodes that are not offline: drainers may still need their data."""
        nodes = pump_nodes(self.pd.etcd, self.now).values() if self.pd else ()
        return [node for node in nodes if node["state"] != OFFLINE]

    @property
    def root_password(self) -> tuple[str, str]:
        """The password in the cluster's Secret, and the one that TiDB requires; empty without one."""
        secret = self.get(SECRETS, f"{self.name}-init") or {}
        held = base64.b64decode((secret.get("data") or {}).get("root", "")).decode()
        return held, self.pd.users["root"] if self.pd else ""

    def holds_live_data(self, claim: Json) -> str:
        """The member or store whose data is in a claim's volume and counts for PD; or empty."""
        disk = self._world.data_plane.disk(claim["metadata"]["uid"])
        data = next((each.data for each in (disk, *disk.directories.values()) if each.data is not None), None)
        if isinstance(data, PdData) and data.member in data.cluster.members:
            return f"PD member {data.cluster.members[data.member].name}"
        if isinstance(data, StoreData):
            found = next((store for store in self.stores if store.id == data.store), None)
            if found is not None:
                return f"store {found.id} ({self.store_state(found)})"
        if isinstance(data, PumpData):
            held = next((node for node in self.pump_nodes if node["nodeId"] == data.node), None)
            return f"Pump node {data.node} ({held['state']})" if held else ""
        return ""


def _key_of(cluster: Json) -> str:
    return f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"


def _joined_by(cluster: Json | None) -> str:
    """The cluster `namespace/name` that one joins, or empty."""
    found = ((cluster or {}).get("spec") or {}).get("cluster")
    return f"{found.get('namespace') or (cluster or {})['metadata']['namespace']}/{found['name']}" if found else ""


def component_of(store: Store) -> str:
    """The component of a store."""
    return "tiflash" if store.is_tiflash else "tikv"


def pump_pod(node: Json) -> str:
    """The pod of a Pump node."""
    return str(node["host"]).partition(".")[0]


def pod_of(store: Store) -> str:
    """The pod with a store's address."""
    return store.address.partition(".")[0]


def pod_of_member(member: Member) -> str:
    """The pod of a PD member, whose name is the host name if the cluster has a domain."""
    return member.name.partition(".")[0]


def is_ready(pod: Json) -> bool:
    """True if a pod is Ready."""
    return holds(pod, "Ready")


def is_outdated(stateful_set: Json, pod: Json) -> bool:
    """True if a pod does not have the newest revision."""
    newest = stateful_set.get("status", {}).get("updateRevision", "")
    return bool(newest) and pod["metadata"].get("labels", {}).get("controller-revision-hash") != newest


def partition(strategy: Json) -> int:
    """The ordinal below which pods are not updated; with OnDelete, none are updated."""
    if strategy.get("type") == "OnDelete":
        return NEVER
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def kept_ordinals(stateful_set: Json | None) -> Sequence[int]:
    """The ordinals of the pods that the StatefulSet's controller keeps, ascending; none without a StatefulSet."""
    return () if stateful_set is None else Snapshot(stateful_set, {}, "", "", 0.0).ordinals


def bound(stateful_set: Json) -> int:
    """One above the highest of these ordinals."""
    return max(kept_ordinals(stateful_set), default=-1) + 1


def replicas(stateful_set: Json) -> int:
    """The desired number of pods."""
    return int(stateful_set["spec"].get("replicas", 1))
