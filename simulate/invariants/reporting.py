"""Reporting: after the end of all activity, a status is true, whether or not the spec is valid (I36, O8)."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apis.components import component_type
from kube.objects import Json
from kube.resources import (
    DM_CLUSTERS,
    PODS,
    SERVICES,
    TIDB_DASHBOARDS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from simulate.engine.components import managed_components
from simulate.engine.state import State, is_ready, replicas
from simulate.invariants.facts import asked_for, conditions, is_suspended, records, says_ready, status_of

_READY_OF = re.compile(r"\b([a-z-]+): (\d+) of (\d+) pods are Ready")

_OTHERS: Mapping[Resource, Mapping[str, str]] = {
    DM_CLUSTERS: {"master": "dm-master", "worker": "dm-worker"},
    TIDB_MONITORS: {"": "monitor"},
    TIDB_DASHBOARDS: {"": "tidb-dashboard"},
    TIDB_NG_MONITORINGS: {"ngMonitoring": "ng-monitoring"},
}
"""For other kinds than TidbClusters, the status field of each workload, and the suffix of its name."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A workload, its owner's status about it, and the number of its Ready pods.

    `wanted` is the number of pods that spec and failover require, if known.
    """

    name: str
    status: Json
    live: Json | None
    ready: int
    wanted: float = math.inf

    @property
    def lacks(self) -> str:
        """The shortage in words."""
        if self.live is None:
            return f"StatefulSet {self.name} is not there"
        # after a scale-in was requested, any pods may remain
        needed = min(replicas(self.live), self.wanted)
        return f"pods of {self.name} are not Ready" if self.ready < needed else ""


def unfounded(state: State) -> Iterator[str]:
    """Ready=True although a workload is missing, or not all of its pods are Ready."""
    for owner, workloads in _owners(state):
        for told in workloads if says_ready(owner.get("status") or {}) else ():
            if told.lacks:
                yield f"{owner['kind']} {owner['metadata']['name']} says Ready=True though {told.lacks}"


def untrue(state: State) -> Iterator[str]:
    """A wrong count of Ready pods, or a sentence with wrong numbers."""
    for owner, workloads in _owners(state):
        status, name = owner.get("status") or {}, f"{owner['kind']} {owner['metadata']['name']}"
        names: dict[str, str] = {}
        for told in workloads:
            names[told.name.removeprefix(f"{owner['metadata']['name']}-")] = told.name
            counted = (told.status.get("statefulSet") or {}).get("readyReplicas", 0)
            if told.status.get("statefulSet") and counted != told.ready:
                yield f"{name} counts other Ready pods of {told.name} than there are"
        # a sentence counts pods, which the controller of Advanced StatefulSets may not have reported
        for part, count, _ in _READY_OF.findall(conditions(status).get("Progressing", {}).get("message", "")):
            if part in names and int(count) != _ready_pods(state, names[part]):
                yield f"{name} says of {part} that other pods are Ready than there are"


def unserved(state: State) -> Iterator[str]:
    """What keeps clusters from serving: no Ready, no StatefulSet, pods that are not Ready, no Service."""
    for owner, workloads in _owners(state):
        name = owner["metadata"]["name"]
        if not says_ready(owner.get("status") or {}):
            yield f"{owner['kind']} {name} is not Ready"
        for told in workloads:
            if told.lacks:
                yield told.lacks
            peer = f"{told.name}{component_type(told.name.removeprefix(f'{name}-')).peer_suffix}"
            if state.get(SERVICES, peer) is None:
                yield f"Service {peer} is not there"


def _owners(state: State) -> Iterator[tuple[Json, Iterator[_Told]]]:
    """The owners of workloads, each with what it says of them; only what the caller draws is looked up."""
    cluster = state.cluster
    if cluster is not None and not _is_going(cluster):
        parts = [component for component in managed_components() if status_of(cluster, component).get("statefulSet")]
        active = [each for each in parts if not is_suspended(cluster, each)]
        yield cluster, (_of_cluster(state, cluster, each) for each in active)
    for resource, parts_of in _OTHERS.items():
        for owner in state.all(resource):
            name, status = owner["metadata"]["name"], owner.get("status") or {}
            known = {end: status.get(part) or {} if part else status for part, end in parts_of.items()}
            if not _is_going(owner):
                yield owner, iter([_told(state, f"{name}-{end}", each) for end, each in known.items() if each])


def _is_going(owner: Json) -> bool:
    return bool(owner["metadata"].get("deletionTimestamp"))


def _of_cluster(state: State, cluster: Json, component: str) -> _Told:
    wanted = asked_for(cluster, component) + len(records(cluster, component))
    return _told(state, f"{state.name}-{component}", status_of(cluster, component), wanted)


def _told(state: State, workload: str, status: Json, wanted: float = math.inf) -> _Told:
    live = state.workload(workload)
    if live is not None:
        return _Told(workload, status, live, (live.get("status") or {}).get("readyReplicas", 0), wanted)
    return _Told(workload, status, None, _ready_pods(state, workload), wanted)


def _ready_pods(state: State, workload: str) -> int:
    """The Ready pods of a workload, without those that have lost a label of its selector: it does not own them."""
    live = state.workload(workload)
    labels = live["spec"]["selector"]["matchLabels"].items() if live else {}.items()
    return sum(
        is_ready(pod) and labels <= (pod["metadata"].get("labels") or {}).items()
        for pod in state.all(PODS)
        if pod["metadata"]["name"].rpartition("-")[0] == workload
    )
