"""All objects of a namespace as one comparable tree, with values masked that differ from run to run."""

import re
from typing import Any

from kube.client import Client
from kube.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)

_COMPARED = (
    CONTROLLER_REVISIONS,
    TIDB_CLUSTERS,
    SERVICES,
    CONFIG_MAPS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    ROLES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
)
_NAMED = (PODS, PERSISTENT_VOLUME_CLAIMS)
"""Objects that other programs create from ours: their existence is enough."""

_OF_STATEFUL_SET = re.compile(r"-\d{1,4}$")
"""The end of names that StatefulSets give. The five characters that a Deployment's pod gets may all be digits."""

_VOLATILE = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
    "createdAt",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "clusterID",
    "id",
    "leader",
    "leaderCount",
    "node",
    # how often the operator has written, and what the cluster looked like then
    "tidb.pingcap.com/written-for",
    "tidb.pingcap.com/written-generation",
    "tidb.pingcap.com/requeued-at",
    "tidb.pingcap.com/admitted-template",
}
"""Values that servers draw, stamp, elect and place."""

_FOREIGN = {"kube-root-ca.crt", "default"}


def picture(client: Client, namespace: str) -> dict[str, object]:
    """Every value by the kind and name of its object and its path; pods and claims by their ordinal names alone."""
    seen: dict[str, object] = {}
    for resource in _COMPARED:
        for item in client.list_page(resource, namespace).items:
            if item.metadata.name not in _FOREIGN:
                seen |= _flat(_masked(item.decode()), f"{resource.kind} {item.metadata.name}")
    for resource in _NAMED:
        names = [item.metadata.name for item in client.list_page(resource, namespace).items]
        seen |= dict.fromkeys([f"{resource.kind} {name}" for name in names if _OF_STATEFUL_SET.search(name)])
    return seen


def differences(expected: dict[str, object], actual: dict[str, object]) -> dict[str, tuple[object, object]]:
    """The differences between two pictures: path, expected and actual value."""
    return {
        path: (expected.get(path), actual.get(path))
        for path in sorted(expected | actual)
        if expected.get(path, ...) != actual.get(path, ...)
    }


def _flat(tree: Any, path: str) -> dict[str, object]:
    inner: dict[str, object] = {}
    match tree:
        case dict():
            for name, value in tree.items():
                inner |= _flat(value, f"{path}.{name}")
        case list():
            for index, value in enumerate(tree):
                inner |= _flat(value, f"{path}[{index}]")
        case _:
            inner[path] = tree
    return inner


def _masked(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_masked(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if "stores" in tree:
        # which store gets which id is the servers' luck
        by_pod = {store["podName"]: store for store in tree["stores"].values()}
        tree = {**tree, "stores": by_pod}
    return {name: _masked(value) for name, value in tree.items() if name not in _VOLATILE}
