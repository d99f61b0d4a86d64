"""The number of pods of a component, and their ordinals (defaults-and-validation.md 8.3, lifecycle.md 4.2, 4.4).

Delete slots, an annotation with ordinals to skip, need the AdvancedStatefulSet feature: without it a StatefulSet counts
from 0 without gaps, so the annotation is ignored.
"""

from collections.abc import Collection

import msgspec

from apis.accessor import find
from apis.cluster import Cluster
from apis.components import component_type
from apis.shared import WorkloadSpec

_SLOTS = msgspec.json.Decoder(list[int] | None)


def slots_annotation(component: str) -> str:
    """The annotation of the TidbCluster with a component's delete slots."""
    return f"{component}.tidb.pingcap.com/delete-slots"


def parse_slots(text: str) -> frozenset[int]:
    """The ordinals in an annotation; `null` means none. Raises ValueError unless it is a JSON list of int32 >= 0."""
    try:
        slots = _SLOTS.decode(text) or []
    except msgspec.MsgspecError:
        raise ValueError("must be a JSON list of integers such as [1,3]") from None
    if any(not 0 <= slot < 2**31 for slot in slots):
        raise ValueError("every ordinal must be between 0 and 2147483647")
    return frozenset(slots)


def delete_slots(tc: Cluster, component: str, *, advanced: bool = False) -> frozenset[int]:
    """The ordinals to skip; none unless the AdvancedStatefulSet feature is on (`advanced`).

    Raises ValueError for an annotation that validation refuses.
    """
    text = tc.metadata.annotations.get(slots_annotation(component))
    if text is None or not advanced:
        return frozenset()
    return parse_slots(text)


def ordinals(replicas: int, slots: Collection[int] = ()) -> list[int]:
    """The ordinals of `replicas` pods that skip `slots`, ascending. Slots above the highest ordinal have no effect."""
    count = replicas
    skipped = set()
    for slot in sorted(slots):
        if slot < count:
            skipped.add(slot)
            count += 1
    return [ordinal for ordinal in range(count) if ordinal not in skipped]


def desired_replicas(tc: Cluster, component: str) -> int:
    """The desired replicas of the StatefulSet: the spec's, substitutes and spares; 0 if absent."""
    workload = _workload(tc, component)
    return workload.replicas + _extra(tc, component, workload) if workload else 0


def desired_ordinals(tc: Cluster, component: str, *, advanced: bool = False, with_failover: bool = True) -> list[int]:
    """The desired ordinals of the StatefulSet; without `with_failover`, only for the spec's replicas."""
    workload = _workload(tc, component)
    if workload is None:
        return []
    replicas = desired_replicas(tc, component) if with_failover else workload.replicas
    return ordinals(replicas, delete_slots(tc, component, advanced=advanced))


def _workload(tc: Cluster, component: str) -> WorkloadSpec | None:
    found = find(tc, component)
    return found.spec if found and isinstance(found.spec, WorkloadSpec) else None


def _extra(tc: Cluster, component: str, workload: WorkloadSpec) -> int:
    """Substitutes of failed pods, and spares while volumes are replaced one pod at a time."""
    status = component_type(component).status(tc.status)
    if status is None:
        return 0
    return len(status.failed_pods) + (workload.spare_replicas if status.replaces_volumes else 0)
