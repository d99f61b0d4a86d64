"""Failover: records, consequences and limits (I21-I23, I25)."""

from collections.abc import Sequence

from apis.components import component_type
from kube.objects import Json
from simulate.engine.components import managed_components, profile
from simulate.engine.state import State, component_of, kept_ordinals, pod_of, replicas
from simulate.invariants.facts import annotations, asked_for, is_replaced, kind_of_record, records, spec_of, status_of
from simulate.invariants.operator_write import OperatorWrite

_TOLERANCE = 1.0
"""Seconds by which the observations of operator and judge may differ."""


def i21(write: OperatorWrite) -> str | None:
    """There are never more failure records than maxFailoverCount, and none if it is 0 (I25)."""
    for component in managed_components():
        found, limit = _records_after(write, component), int(spec_of(write.seen, component).get("maxFailoverCount", 3))
        # records from before a lower limit stay until they are resolved
        if len(found) > max(limit, len(records(write.before.cluster, component))):
            return f"{len(found)} failure records of {component}, maxFailoverCount is {limit}"
    return None


def too_many_replicas(state: State) -> str | None:
    """I21: StatefulSets never have more replicas than the spec and the failover limit allow."""
    for component in managed_components():
        live = state.stateful_set(component)
        wanted = spec_of(state.cluster, component) if live else None
        if not live or not wanted:
            continue
        spare, limit = int(component_type(component).claims.hold_data), int(wanted.get("maxFailoverCount", 3))
        # after the spec was lowered, surplus pods are removed one by one
        if replicas(live) > max(wanted["replicas"] + limit, max(state.pods(component), default=-1) + 1) + spare:
            return (
                f"{component} has {replicas(live)} replicas, the spec asks for {wanted['replicas']} + {limit} at most"
            )
    return None


def i22(write: OperatorWrite) -> str | None:
    """A failure is recorded only for a pod that Kubernetes also reported as not Ready for the whole period (I25)."""
    for component in managed_components():
        period = profile(component).failover_period(write.failover)
        for record in _new_records(write, component):
            pod, since = record.get("podName", ""), write.before.unready.get(record.get("podName", ""))
            lasted = write.before.now - since if since is not None else 0.0
            if not write.failover.auto or lasted < period - _TOLERANCE:
                return f"a failure record of {pod}, which is not Ready for {lasted:.0f} of {period:.0f} s"
    return None


def i23(write: OperatorWrite) -> str | None:
    """A required member or store is removed only after its failure record is stored."""
    component, pod = _given_up(write)
    ordinal, live = int(pod.rpartition("-")[2] or -1), write.before.stateful_set(component) if component else None
    if not pod or ordinal not in _asked_ordinals(write.known, component, live):
        return None
    there = write.before.pods(component).get(ordinal)
    recorded = any(record.get("podName") == pod for record in records(write.before.cluster, component).values())
    if recorded or is_replaced(there):
        return None
    return f"{write.call} gives up {pod}, of which no failure record is stored"


def _asked_ordinals(cluster: Json | None, component: str, live: Json | None) -> Sequence[int]:
    """The ordinals that the spec asks for; delete slots count if `live`, the StatefulSet, is an Advanced one."""
    slots = annotations(cluster).get(f"{component}.tidb.pingcap.com/delete-slots", "[]")
    wanted: Json = {"spec": {"replicas": asked_for(cluster, component)}}
    wanted["metadata"] = {"annotations": {"delete-slots": slots}}
    return kept_ordinals(wanted | {"apiVersion": (live or {}).get("apiVersion")})


def _given_up(write: OperatorWrite) -> tuple[str, str]:
    """The component and pod of the member or store that is removed; both empty if none is."""
    if write.removed_member.rpartition("-")[2].isdecimal():
        return "pd", write.removed_member
    store = next((each for each in write.before.all_stores if each.id == write.removed_store), None)
    return (component_of(store), pod_of(store)) if store else ("", "")


def _records_after(write: OperatorWrite, component: str) -> Json:
    """The failure records of a component after the write."""
    patch = (write.status.get(component) or {}).get(kind_of_record(component), {}) if write.status else {}
    stored = records(write.before.cluster, component)
    return {} if patch is None else {name: value for name, value in (stored | patch).items() if value is not None}


def _new_records(write: OperatorWrite, component: str) -> list[Json]:
    """The failure records that a write adds."""
    sent = status_of({"status": write.status}, component).get(kind_of_record(component)) or {}
    return [record for key, record in sent.items() if key not in records(write.before.cluster, component) and record]
