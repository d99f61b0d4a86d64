"""Failover: what is recorded, what follows from it, and how much (I21-I23, I25)."""

from apis.components import component_type
from kube.objects import Json
from simulate.acts import Act
from simulate.components import managed_components, profile
from simulate.invariants.facts import asked_for, is_replaced, kind_of_record, records, spec_of, status_of
from simulate.state import State, pod_of, replicas

_TOLERANCE = 1.0
"""Seconds by which what the operator and the judge saw may differ."""


def i21(act: Act) -> str | None:
    """There are never more failure records than maxFailoverCount; none where it is 0 (I25)."""
    for part in managed_components():
        found, limit = _records_after(act, part), int(spec_of(act.seen, part).get("maxFailoverCount", 3))
        # records from before a limit was lowered stay until they are resolved
        if len(found) > max(limit, len(records(act.before.cluster, part))):
            return f"{len(found)} failure records of {part}, maxFailoverCount is {limit}"
    return None


def bounded(state: State) -> str | None:
    """I21: StatefulSets never ask for more than the spec and the failover limit allow."""
    for part in managed_components():
        live, wanted = state.stateful_set(part), spec_of(state.cluster, part)
        if not live or not wanted:
            continue
        spare, limit = int(component_type(part).claims.hold_data), int(wanted.get("maxFailoverCount", 3))
        # pods that are still there after the spec was lowered go one by one
        if replicas(live) > max(wanted["replicas"] + limit, max(state.pods(part), default=-1) + 1) + spare:
            return f"{part} has {replicas(live)} replicas, the spec asks for {wanted['replicas']} + {limit} at most"
    return None


def i22(act: Act) -> str | None:
    """A failure record is made only of a pod that Kubernetes, too, has called not Ready for the whole period (I25)."""
    for part in managed_components():
        period = profile(part).failover_period(act.failover)
        for record in _new_records(act, part):
            pod, since = record.get("podName", ""), act.before.unready.get(record.get("podName", ""))
            lasted = act.before.now - since if since is not None else 0.0
            if not act.failover.auto or lasted < period - _TOLERANCE:
                return f"a failure record of {pod}, which is not Ready for {lasted:.0f} of {period:.0f} s"
    return None


def i23(act: Act) -> str | None:
    """A member or store that the spec asks for is given up only when its failure record is stored already."""
    part, pod = _given_up(act)
    if not pod or int(pod.rpartition("-")[2]) >= asked_for(act.known, part):
        return None
    there = act.before.pods(part).get(int(pod.rpartition("-")[2]))
    recorded = any(record.get("podName") == pod for record in records(act.before.cluster, part).values())
    if recorded or is_replaced(there):
        return None
    return f"{act.call} gives up {pod}, of which no failure record is stored"


def _given_up(act: Act) -> tuple[str, str]:
    """The component and the pod of the member or store that is removed, both empty when none is."""
    if act.removed_member.rpartition("-")[2].isdigit():
        return "pd", act.removed_member
    store = next((each for each in act.before.all_stores if each.id == act.removed_store), None)
    return ("tikv", pod_of(store)) if store else ("", "")


def _records_after(act: Act, part: str) -> Json:
    """The failure records of a component as they will be after the write."""
    patch = (act.status.get(part) or {}).get(kind_of_record(part), {}) if act.status else {}
    stored = records(act.before.cluster, part)
    return {} if patch is None else {name: value for name, value in (stored | patch).items() if value is not None}


def _new_records(act: Act, part: str) -> list[Json]:
    """The failure records that a write adds."""
    sent = status_of({"status": act.status}, part).get(kind_of_record(part)) or {}
    return [record for key, record in sent.items() if key not in records(act.before.cluster, part) and record]
