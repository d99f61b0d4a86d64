"""The state of a world at the end, as leaves by path, without differences between two runs of one plan (O1).

UIDs and ids are replaced by names, moments by a word; `differing` lets the caller mask what else differs between two
reference runs.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from apis.cluster import OBSERVED, WITHOUT_EFFECT
from kube.objects import Json
from kube.resources import (
    BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.stores import NodeState
from simulate.engine.certificates import KEYS
from simulate.engine.other_kinds import OTHER_KINDS
from simulate.engine.state import pod_of

Leaves = dict[str, str]

_COMPARED = (
    TIDB_CLUSTERS,
    *OTHER_KINDS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    SERVICES,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
)
_BY_PHASE = (BACKUPS, RESTORES)
"""Objects whose further content depends on time and on retries."""
_VOLATILE = frozenset(
    {
        "uid",
        # keys and certificates are drawn in each process
        *KEYS,
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "observedGeneration",
        "managedFields",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "node",
        "nodeName",
        "clusterIP",
        "clusterIPs",
        "containerID",
        "restartCount",
        "lastState",
        "collisionCount",
        "volumeName",
        "pod-template-hash",
        # the number of the operator's writes, and the cluster at that time
        "tidb.pingcap.com/written-for",
        "tidb.pingcap.com/written-generation",
        "tidb.pingcap.com/requeued-at",
        "tidb.pingcap.com/admitted-template",
        # the number of rollouts
        "deployment.kubernetes.io/revision",
        # random placement
        "volume.kubernetes.io/selected-node",
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
        # whether the control plane or the provisioner handled the claim first
        "volume.kubernetes.io/storage-provisioner",
        "volume.beta.kubernetes.io/storage-provisioner",
        # drawn values, e.g. root's password
        "root",
        # which of equal members leads is random
        "leader",
        "isOwner",
        "leaderCount",
        "leaderCountBeforeUpgrade",
    }
)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[0-9.]*(Z|[+-]\d{2}:\d{2})")
_GONE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d{15,20}\b")
"""UIDs and ids of deleted objects."""
_RECORD = ".pingcap.com/last-applied-configuration"
"""The suffix of annotations that hold a tree as JSON in any order."""
_CHANCE = re.compile(r"(-discovery-)[a-z0-9]{8,10}(?:-[a-z0-9]{5})?|(kube-api-access-)[a-z0-9]+")
"""Names with a hash or a random suffix."""
_SHORT = 8
"""The length up to which store ids are ambiguous numbers elsewhere."""


_OVER = {(OBSERVED, "True"), *((kind, "False") for kind in WITHOUT_EFFECT)}
"""Conditions that remain from the past: failed observations, and corrected fields."""


def end_state(objects: Callable[[Resource], list[Json]], pd: PdCluster | None, now: float) -> Leaves:
    """The leaves of every compared object, and of PD at a monotonic time.

    `objects` returns the objects of a resource, in the cluster's namespace if it is namespaced.
    """
    trees = {resource: objects(resource) for resource in (*_COMPARED, PERSISTENT_VOLUMES)}
    # pods of Jobs have random names, and their number is not in any status
    trees[PODS] = [each for each in trees[PODS] if "job-name" not in (each["metadata"].get("labels") or {})]
    names = _Names(dict(_names(trees, pd)))
    found: Leaves = {}
    for resource in _COMPARED:
        for tree in trees[resource]:
            root = f"{resource}/{_without_chance(tree['metadata']['name'])}"
            found |= dict(_leaves(tree, root, names))
    for resource in _BY_PHASE:
        for tree in objects(resource):
            found[f"{resource}/{tree['metadata']['name']}.phase"] = str((tree.get("status") or {}).get("phase", ""))
    return found | (dict(_pd(pd, now)) if pd else {})


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> set[str]:
    """The paths at which two end states differ."""
    return {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}


def _names(trees: Mapping[Resource, Iterable[Json]], pd: PdCluster | None) -> Iterator[tuple[str, str]]:
    """Ids and hashes with their replacements."""
    for each in trees.values():
        for tree in each:
            yield tree["metadata"]["uid"], f"<uid of {tree['metadata']['name']}>"
    for tree in trees[STATEFUL_SETS]:
        for which in ("currentRevision", "updateRevision"):
            if revision := tree.get("status", {}).get(which):
                yield revision, f"<{which} of {tree['metadata']['name']}>"
    if pd is None:
        return
    for member in pd.members.values():
        yield str(member.id), f"<id of {member.name}>"
    for store in pd.stores.all():
        if store.node_state is not NodeState.REMOVED:
            yield str(store.id), f"<id of the store of {pod_of(store)}>"
    yield str(pd.id), "<cluster id>"


class _Names:
    """Ids and hashes with their replacements; remembers texts, because most keys and values occur in many objects."""

    def __init__(self, exact: Mapping[str, str]) -> None:
        self.exact = exact
        self._inside = [(each, name) for each, name in exact.items() if len(each) > _SHORT]
        self._known: dict[str, str] = {}

    def replaced(self, text: str) -> str:
        """The text with names in place of the ids in it."""
        found = self._known.get(text)
        if found is None:
            found = _without_chance(_MOMENT.sub("<moment>", text))
            if len(found) > 20:
                for each, name in self._inside:
                    if each in found:
                        found = found.replace(each, name)
            found = self._known[text] = _GONE.sub("<gone>", found)
        return found


def _leaves(value: Any, path: str, names: _Names) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _VOLATILE:
                yield from _leaves(inner, f"{path}.{_named(key, path, names)}", names)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if path.endswith(".conditions") and (inner.get("type"), inner.get("status")) in _OVER:
                continue
            # the order of conditions is insignificant
            place = inner.get("type", index) if path.endswith(".conditions") else index
            yield from _leaves(inner, f"{path}[{place}]", names)
    elif path.endswith(_RECORD) and (record := _record(value)) is not None:
        yield from _leaves(record, path, names)
    elif isinstance(value, str):
        yield path, _named(value, path, names)
    elif value is not None:
        yield path, str(value)


def _record(text: str) -> Any:
    """The content of a record; None if another client has spoilt it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _named(text: str, path: str, names: _Names) -> str:
    """A value or key at `path` with names in place of ids."""
    exact = names.exact.get(text)
    if exact is not None and (len(text) > _SHORT or "store" in path.lower()):
        return exact
    return names.replaced(text)


def _pd(pd: PdCluster, now: float) -> Iterator[tuple[str, str]]:
    for member in pd.members.values():
        yield f"pd/members/{member.name or member.peer_url}", "healthy" if member.healthy else "unhealthy"
    by_id = {store.id: pod_of(store) for store in pd.stores.all()}
    for store in pd.stores.all():
        if store.node_state is not NodeState.REMOVED:
            yield f"pd/stores/{pod_of(store)}/{pd.stores.true_state(store, now)}", ", ".join(sorted(store.labels))
    gone = (store.id for store in pd.stores.all() if store.node_state is NodeState.REMOVED)
    yield "pd/tombstones", ", ".join(sorted(by_id[each] for each in gone))
    yield "pd/evicting", ", ".join(sorted(by_id.get(each, str(each)) for each in pd.stores.evicting))
    yield "pd/config", str(pd.config.sections["replication"])


def _without_chance(name: str) -> str:
    return _CHANCE.sub(lambda found: f"{found.group(1) or found.group(2)}*", name)
