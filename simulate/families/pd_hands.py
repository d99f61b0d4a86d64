"""Actions of people with pd-ctl in PD while a user makes a change (reliability.md R20, F16, F17).

`pd-ctl/tikv-upgrade.leaders-change@9` is the workload `tikv-upgrade` with a PD whose leader resigns repeatedly from the
ninth second. The operator shares PD with the database's administrators: it must end as without them, and leave their
decisions to them.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from msgspec.structs import replace

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, TIDB_CLUSTERS
from simulate.engine.plan import EVICTION, Plan, World
from simulate.engine.worlds import KEY, NAME
from simulate.families.family import of_known
from simulate.families.workloads import WORKLOADS

_MOMENTS = (2.0, 9.0, 30.0)
"""Seconds."""
_AFTERWARDS = 120.0
_REMOVED = "was removed from PD"
"""The status text about a member or store that an administrator has removed, until its pod gets new volumes."""
_MORE = "PD keeps 5 replicas"
"""The status text about a store that cannot leave because more replicas are required than stores would remain."""
_TOO_FEW = "only 2 TiKV stores would be Up"
"""The status text about a scale-in that would have been possible with the removed store."""
_TOMBSTONES = ("pd/tombstones", f"{TIDB_CLUSTERS}/{NAME}.status.tikv.tombstoneStores")

_WORKLOADS = (
    "pause",
    "tikv-out",
    "tikv-upgrade",
    "pd-upgrade",
    "upgrade",
    "tikv-in",
    "tikv-in-taken-back",
    "pd-in",
    "pd-out",
    "evict-leader",
    "tikv-failover",
    "pd-failover",
    "tikv-replace-volume",
    "pd-replace-volume",
    "pd-transfer-leader",
    "suspend-resume",
    "tikv-other-volumes",
)

Request = Callable[[float], tuple[World, ...]]


def _asked(
    method: str, path: str, body: Json | None = None, pod: str = "", *, times: int = 1, every: float = 0.0
) -> Request:
    """A request, or several similar ones."""
    arguments: Json = {"cluster": KEY, "method": method, "path": path, "pod": pod and f"{NAME}-{pod}"}
    arguments |= {} if body is None else {"body": body}
    return lambda at: tuple(
        World(at=at + every * number, verb="pd_ctl", arguments=arguments, seconds=0.0, if_there=True)
        for number in range(times)
    )


REQUESTS: Mapping[str, Request] = {
    "leaders-change": _asked("POST", "leader/resign", times=8, every=7.0),
    "leaders-evicted": _asked("POST", "schedulers", EVICTION, "tikv-1"),
    "evictions-end": _asked("DELETE", "schedulers/evict-leader-scheduler", times=6, every=5.0),
    "store-removed": _asked("DELETE", "store/{store}", pod="tikv-1"),
    "store-kept": _asked("POST", "store/{store}/state?state=Up", pod="tikv-4", times=4, every=10.0),
    "store-moved": _asked("POST", "store/{store}/label", {"host": "elsewhere"}, "tikv-1"),
    "tombstones-forgotten": _asked("DELETE", "stores/remove-tombstone", times=4, every=20.0),
    "more-replicas": _asked("POST", "config/replicate", {"max-replicas": 5}),
    "member-removed": _asked("DELETE", f"members/name/{NAME}-pd-1"),
}


_THEIRS: Mapping[str, tuple[str, ...]] = {
    # a new leader of PD allocates other ids
    "leaders-change": (*_TOMBSTONES, f"{PERSISTENT_VOLUME_CLAIMS}/*"),
    "leaders-evicted": ("pd/evicting",),
    "store-moved": ("pd/stores/*",),
    "tombstones-forgotten": _TOMBSTONES,
    "more-replicas": ("pd/config",),
}
"""Differences that administrators may cause."""

_CONFLICTS: Mapping[str, tuple[str, ...]] = {
    "member-removed": (_REMOVED,),
    "store-removed": (_REMOVED, _TOO_FEW),
    "more-replicas": (_MORE,),
}
"""Texts that the final status may have, because only administrators can act."""


def _plans() -> Iterator[Plan]:
    for workload, request, at in product(_WORKLOADS, REQUESTS, _MOMENTS):
        base = WORKLOADS[workload]
        yield replace(
            base,
            name=f"{FAMILY.name}/{workload}.{request}@{at:g}",
            faults=REQUESTS[request](at),
            budget=base.budget + _AFTERWARDS,
            theirs=_THEIRS.get(request, ()),
            conflicts=_CONFLICTS.get(request, ()),
        )


FAMILY = of_known("pd-ctl", _plans, "nothing that others do in PD")
