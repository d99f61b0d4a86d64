"""Facts about a cluster from its status (defaults-and-validation.md 8.5, lifecycle.md 3.1, 4.3).

A status that the last observation could not refresh is unknown: readiness and availability are then False (F7).
"""

from typing import Literal, TypeAlias

from apis.accessor import find
from apis.cluster import Cluster
from apis.components import component_type
from apis.ordinals import desired_replicas
from apis.shared import ComponentStatus
from apis.tidbcluster import TidbCluster

Phase: TypeAlias = Literal["Normal", "Upgrade", "Scale", "Suspend"]


def status_of(tc: Cluster, component: str) -> ComponentStatus | None:
    """The status of a member type; None for a PD microservice that has none, and for Discovery."""
    return component_type(component).status(tc.status)


def uses_microservices(tc: TidbCluster) -> bool:
    """True if PD delegates timestamps and scheduling to microservices (lifecycle.md 3.1)."""
    return bool(tc.spec.pdms) and tc.spec.pd is not None and tc.spec.pd.mode == "ms"


def in_phase(tc: Cluster, component: str, *phases: Phase) -> bool:
    """True if a component is in one of the phases. Before its StatefulSet exists it is in none."""
    status = status_of(tc, component)
    return status is not None and status.phase in phases


def is_synced(tc: Cluster, component: str) -> bool:
    """True if the status is from the last observation."""
    status = status_of(tc, component)
    return status is not None and status.is_current


def actual_replicas(tc: Cluster, component: str) -> int:
    """The pods the StatefulSet has; 0 when there is none."""
    status = status_of(tc, component)
    return int(((status.stateful_set if status else None) or {}).get("replicas") or 0)


def tells_of_stateful_set(tc: Cluster, component: str) -> bool:
    """True if the status knows of a StatefulSet of a component, which may be gone since."""
    status = status_of(tc, component)
    return bool(status and status.stateful_set)


def is_suspended(tc: Cluster, component: str) -> bool:
    """True if the suspension of a component was requested and is complete: its StatefulSet is gone (lifecycle.md
    12)."""
    found, status = find(tc, component), status_of(tc, component)
    if found is None or status is None or status.phase != "Suspend":
        return False
    return not found.suspended or status.stateful_set is None


def all_members_ready(tc: Cluster, component: str) -> bool:
    """True if a component that the spec has runs as many pods and members as wanted, each of them well."""
    if find(tc, component) is None:
        return False
    status, wanted = status_of(tc, component), desired_replicas(tc, component)
    if status is None:
        # it has no objects, and the spec wants none
        return wanted == 0
    # PD still reports a store as Up for a while after its pod was deleted
    if not status.is_current or (status.stateful_set or {}).get("replicas", wanted) < wanted:
        return False
    health = status.health
    return wanted == len(health) and all(health)


def counted_pods(tc: Cluster, component: str) -> int:
    """The number of pods that the StatefulSet of a component reports; the desired number where the status has none."""
    status, wanted = status_of(tc, component), desired_replicas(tc, component)
    counted: int = ((status and status.stateful_set) or {}).get("replicas", wanted)
    return counted


def is_available(tc: Cluster, component: str) -> bool:
    """True if enough of a component serves for others to start; also when it is not in the spec, as a PD elsewhere."""
    found, status = find(tc, component), status_of(tc, component)
    if found is None or status is None:
        return found is None or found.workload.replicas == 0
    return status.is_available(found.workload.replicas)
