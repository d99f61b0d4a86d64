"""The plan of a drain: its steps, pod by pod, in order. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from apis.accessor import find
from apis.components import component_names, component_type
from apis.pod_commands import DELETE_POD, REPLACE_VOLUME
from cli.tidb.clusters import Found
from cli.tidb.pod_commands import restart_command
from cli.tidb.pods import ClusterPod
from kube.objects import Json

RESTART, REPLACE, STAYS = "restart", "replace volumes", "stays"
"""The ways of a pod: restarted elsewhere with its volumes, or with new ones, or not movable."""

_HOSTNAME = "kubernetes.io/hostname"


class Step(msgspec.Struct, rename="camel"):
    """The step for a pod. `command` is the annotation with its value, empty if the pod stays; `note` is the reason, or
    a caution.
    """

    namespace: str
    pod: str
    component: str
    cluster: str
    how: str
    command: str
    note: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod on the node. `found` is its cluster; `local_claims` are its volumes that only this node has."""

    pod: ClusterPod
    found: Found
    local_claims: tuple[str, ...] = ()


def steps_of(candidates: Iterable[Candidate]) -> list[Step]:
    """The plan: cluster by cluster, components in the order of an upgrade."""
    order = {name: at for at, name in enumerate((*component_names(), *component_names(of="DMCluster")))}
    ordered = sorted(
        candidates,
        key=lambda each: (
            each.found.object.metadata.namespace,
            each.found.object.metadata.name,
            order[each.pod.component],
            each.pod.name,
        ),
    )
    return [_step(candidate) for candidate in ordered]


def _step(each: Candidate) -> Step:
    how, key, note = _way(each)
    values = component_type(each.pod.component).commands.get(key, frozenset())
    value = DELETE_POD if DELETE_POD in values else "true"
    meta = each.pod.object.metadata
    return Step(
        namespace=meta.namespace,
        pod=meta.name,
        component=each.pod.component,
        cluster=each.found.text,
        how=how,
        command=f"{key}={value}" if key else "",
        note=note,
    )


def _way(each: Candidate) -> tuple[str, str, str]:
    """The method of moving a pod, the annotation for it, and a note."""
    component = each.pod.component
    if each.found.cluster.spec.paused:
        return STAYS, "", f"the cluster is paused: kubectl tidb resume {each.found.text}"
    if each.local_claims:
        claims = ", ".join(each.local_claims)
        if REPLACE_VOLUME not in component_type(component).commands:
            return STAYS, "", f"its volume is on this node ({claims}), and the operator moves none of {component}"
        return REPLACE, REPLACE_VOLUME, f"its data move away first; then it gets new volumes in place of {claims}"
    key = restart_command(component)
    if key is None:
        return STAYS, "", "kubectl drain takes it: nothing of it moves away before"
    return RESTART, key, _alone(each)


def _alone(each: Candidate) -> str:
    own = find(each.found.cluster, each.pod.component)
    return "the only one: clients wait until it is back" if own and own.workload.replicas == 1 else ""


def local_claims(pod: Json, volumes: Mapping[str, Json]) -> Iterator[str]:
    """A pod's claims with volumes that only one node has; `volumes` are PersistentVolumes by the claim's name."""
    return (claim for claim in claims_of(pod) if claim in volumes and _is_local(volumes[claim]["spec"]))


def claims_of(pod: Json) -> Iterator[str]:
    """The claims that a pod mounts."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]


def _is_local(volume: Json) -> bool:
    if "local" in volume or "hostPath" in volume:
        return True
    required = ((volume.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    return any(each.get("key") == _HOSTNAME for term in required for each in term.get("matchExpressions") or ())
