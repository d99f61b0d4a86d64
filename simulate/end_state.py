"""What a world looks like at the end, as leaves by path, without what two runs of the same plan may differ in (O1).

UIDs and ids are replaced by names, moments by a word; what else differs between two reference runs is masked by the
caller (`differing`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from sandbox.dataplane.pd.stores import NodeState
from simulate.state import State, pod_of

Leaves = dict[str, str]

_COMPARED = (
    TIDB_CLUSTERS,
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
_VOLATILE = frozenset(
    {
        "uid",
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
        # where pods are placed is chance
        "volume.kubernetes.io/selected-node",
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
        # where the last roll came to its end
        "partition",
        # which of the equal members leads is chance
        "leader",
        "leaderCount",
        "leaderCountBeforeUpgrade",
    }
)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[0-9.]*(Z|[+-]\d{2}:\d{2})")
_RECORD = ".pingcap.com/last-applied-configuration"
"""An annotation that holds a tree as JSON, in any order."""
_CHANCE = re.compile(r"(-discovery-)[a-z0-9]+-[a-z0-9]+|(kube-api-access-)[a-z0-9]+")
"""Names that end in chance."""


def end_state(state: State) -> Leaves:
    """The leaves of every object that is compared, and of PD."""
    names = dict(_names(state))
    found: Leaves = {}
    for resource in _COMPARED:
        for tree in state.all(resource):
            root = f"{resource}/{_without_chance(tree['metadata']['name'])}"
            found |= {path: _named(value, names) for path, value in _leaves(tree, root, names)}
    return found | dict(_pd(state))


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> set[str]:
    """The paths at which two end states differ."""
    return {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}


def _names(state: State) -> Iterator[tuple[str, str]]:
    """Ids and what to say instead of them."""
    for resource in (*_COMPARED, PERSISTENT_VOLUMES):
        for tree in state.all(resource):
            yield tree["metadata"]["uid"], f"<uid of {tree['metadata']['name']}>"
    for member in state.members:
        yield str(member.id), f"<id of {member.name}>"
    for store in state.stores:
        yield str(store.id), f"<id of the store of {pod_of(store)}>"
    if state.pd is not None:
        yield str(state.pd.id), "<cluster id>"


def _leaves(value: Any, path: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _VOLATILE:
                yield from _leaves(inner, f"{path}.{names.get(key, key)}", names)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]", names)
    elif path.endswith(_RECORD):
        yield from _leaves(msgspec.json.decode(value), path, names)
    else:
        yield path, str(value)


def _named(value: str, names: Mapping[str, str]) -> str:
    exact = names.get(value)
    if exact is not None:
        return exact
    value = _without_chance(_MOMENT.sub("<moment>", value))
    if len(value) > 20:
        for text, name in names.items():
            if len(text) > 8 and text in value:
                value = value.replace(text, name)
    return value


def _pd(state: State) -> Iterable[tuple[str, str]]:
    for member in state.members:
        yield f"pd/members/{member.name or member.peer_url}", "healthy" if member.healthy else "unhealthy"
    for store in state.stores:
        yield f"pd/stores/{pod_of(store)}/{state.store_state(store)}", ", ".join(sorted(store.labels))
    gone = sorted(pod_of(store) for store in state.all_stores if store.node_state is NodeState.REMOVED)
    yield "pd/tombstones", ", ".join(gone)
    if state.pd is not None:
        by_id = {store.id: pod_of(store) for store in state.all_stores}
        yield "pd/evicting", ", ".join(sorted(by_id.get(each, str(each)) for each in state.pd.stores.evicting))
        yield "pd/config", str(state.pd.config.sections["replication"])


def _without_chance(name: str) -> str:
    return _CHANCE.sub(lambda found: f"{found.group(1) or found.group(2)}*", name)
