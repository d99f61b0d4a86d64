"""How many pods a component wants, and with which ordinals (defaults-and-validation.md 8.3, lifecycle.md 4.2, 4.4).

Delete slots, an annotation that lists ordinals to skip, need the AdvancedStatefulSet feature: without it a StatefulSet
counts from 0 without gaps, so the annotation is ignored.
"""

from collections.abc import Collection

import msgspec

from apis.accessor import find
from apis.tidbcluster import TidbCluster

_SLOTS = msgspec.json.Decoder(list[int] | None)


def slots_annotation(component: str) -> str:
    """The annotation of the TidbCluster with a component's delete slots."""
    return f"{component}.tidb.pingcap.com/delete-slots"


def parse_slots(text: str) -> frozenset[int]:
    """The ordinals an annotation lists; `null` lists none. Raises ValueError unless it is a JSON list of int32 >= 0."""
    try:
        slots = _SLOTS.decode(text) or []
    except msgspec.MsgspecError:
        raise ValueError("must be a JSON list of integers such as [1,3]") from None
    if any(not 0 <= slot < 2**31 for slot in slots):
        raise ValueError("every ordinal must be between 0 and 2147483647")
    return frozenset(slots)


def delete_slots(tc: TidbCluster, component: str, *, advanced: bool = False) -> frozenset[int]:
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


def desired_replicas(tc: TidbCluster, component: str) -> int:
    """The replicas the StatefulSet should have: the spec's, substitutes of failed ones, spares. 0 when absent."""
    found = find(tc, component)
    if found is None or component == "discovery":
        return 0
    return found.workload.replicas + _failed(tc, component) + _spare(tc, component)


def desired_ordinals(
    tc: TidbCluster, component: str, *, advanced: bool = False, with_failover: bool = True
) -> list[int]:
    """The ordinals the StatefulSet should have; with `with_failover` off, those of the spec's replicas alone."""
    found = find(tc, component)
    if found is None or component == "discovery":
        return []
    replicas = desired_replicas(tc, component) if with_failover else found.workload.replicas
    return ordinals(replicas, delete_slots(tc, component, advanced=advanced))


def _failed(tc: TidbCluster, component: str) -> int:
    status = tc.status
    match component:
        case "pd":
            return sum(member.member_deleted for member in status.pd.failure_members.values())
        case "tikv":
            return len(status.tikv.failure_stores)
        case "tidb":
            return len(status.tidb.failure_members)
        case "tiflash":
            return len(status.tiflash.failure_stores)
    return 0


def _spare(tc: TidbCluster, component: str) -> int:
    """Extra replicas while volumes are replaced one pod at a time; 1 unless the user chose."""
    if component == "pd" and tc.spec.pd and tc.status.pd.vol_replace_in_progress:
        chosen = tc.spec.pd.spare_vol_replace_replicas
    elif component == "tikv" and tc.spec.tikv and tc.status.tikv.vol_replace_in_progress:
        chosen = tc.spec.tikv.spare_vol_replace_replicas
    else:
        return 0
    return 1 if chosen is None else chosen
