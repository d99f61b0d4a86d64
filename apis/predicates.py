"""What a status tells about a cluster (defaults-and-validation.md 8.5, lifecycle.md 3.1, 4.3).

A status that the last observation could not renew is unknown, not good: readiness and availability are false when
`synced` is (F7). TiDB and Pump have no such field; their status counts as renewed.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from apis.accessor import find
from apis.ordinals import desired_replicas
from apis.shared import Json, TiKVStore
from apis.tidbcluster import (
    PDMSStatus,
    PDStatus,
    PumpStatus,
    TiCDCStatus,
    TidbCluster,
    TiDBStatus,
    TiFlashStatus,
    TiKVStatus,
    TiProxyStatus,
)

Phase: TypeAlias = Literal["Normal", "Upgrade", "Scale", "Suspend"]
ComponentStatus: TypeAlias = (
    PDStatus | PDMSStatus | TiDBStatus | TiKVStatus | TiFlashStatus | TiCDCStatus | TiProxyStatus | PumpStatus
)

STORE_UP = "Up"
PUMP_ONLINE = "online"


def status_of(tc: TidbCluster, component: str) -> ComponentStatus | None:
    """The status of a member type; None for a PD microservice that has none, and for Discovery."""
    status = tc.status
    own: Mapping[str, ComponentStatus] = {
        **status.pdms,
        "pd": status.pd,
        "tidb": status.tidb,
        "tikv": status.tikv,
        "tiflash": status.tiflash,
        "ticdc": status.ticdc,
        "pump": status.pump,
        "tiproxy": status.tiproxy,
    }
    return own.get(component)


def in_phase(tc: TidbCluster, component: str, *phases: Phase) -> bool:
    """Whether a component is in one of the phases. Before its StatefulSet exists it is in none."""
    status = status_of(tc, component)
    return status is not None and status.phase in phases


def is_synced(tc: TidbCluster, component: str) -> bool:
    """Whether the status is that of the last observation; always for TiDB and Pump."""
    status = status_of(tc, component)
    return status is not None and (isinstance(status, TiDBStatus | PumpStatus) or status.synced)


def actual_replicas(tc: TidbCluster, component: str) -> int:
    """The pods the StatefulSet has; 0 when there is none."""
    status = status_of(tc, component)
    return _number(status.stateful_set if status else None, "replicas")


def all_pods_started(tc: TidbCluster, component: str) -> bool:
    """Whether a component that the spec has runs as many pods as it should."""
    return find(tc, component) is not None and desired_replicas(tc, component) == actual_replicas(tc, component)


def is_suspended(tc: TidbCluster, component: str) -> bool:
    """Whether a component is suspended and its StatefulSet gone, if that was asked for (lifecycle.md 12)."""
    found, status = find(tc, component), status_of(tc, component)
    if found is None or status is None or status.phase != "Suspend":
        return False
    return not found.suspended or status.stateful_set is None


# Readiness: as many members as wanted, each of them well


def pd_all_members_ready(tc: TidbCluster) -> bool:
    """Whether PD has all its members, healthy."""
    return _all_ready(tc, "pd", (member.health for member in tc.status.pd.members.values()))


def tidb_all_members_ready(tc: TidbCluster) -> bool:
    """Whether TiDB has all its servers, healthy."""
    return _all_ready(tc, "tidb", (member.health for member in tc.status.tidb.members.values()))


def tikv_all_stores_ready(tc: TidbCluster) -> bool:
    """Whether TiKV has all its stores, Up."""
    return _all_ready(tc, "tikv", _up(tc.status.tikv.stores))


def tiflash_all_stores_ready(tc: TidbCluster) -> bool:
    """Whether TiFlash has all its stores, Up."""
    return _all_ready(tc, "tiflash", _up(tc.status.tiflash.stores))


def ticdc_all_captures_ready(tc: TidbCluster) -> bool:
    """Whether TiCDC has all its captures, ready."""
    return _all_ready(tc, "ticdc", (capture.ready for capture in tc.status.ticdc.captures.values()))


def tiproxy_all_members_ready(tc: TidbCluster) -> bool:
    """Whether TiProxy has all its members, healthy."""
    return _all_ready(tc, "tiproxy", (member.health for member in tc.status.tiproxy.members.values()))


def all_tikv_stores_available(tc: TidbCluster, *, tolerate_one: bool = False) -> bool:
    """Whether the spec's number of TiKV stores exists and all are Up; with `tolerate_one`, one may be missing."""
    if tc.spec.tikv is None or not tc.status.tikv.synced:
        return False
    stores = tc.status.tikv.stores
    missing = tc.spec.tikv.replicas - len(stores)
    return (missing == 0 or (tolerate_one and missing == 1)) and all(_up(stores))


def pd_auto_failovering(tc: TidbCluster) -> bool:
    """Whether a failed PD member still has to be deleted from PD."""
    return any(not member.member_deleted for member in tc.status.pd.failure_members.values())


# Availability: enough of it serves for others to start


def pd_is_available(tc: TidbCluster) -> bool:
    """Whether PD has a quorum of known, healthy and Ready members, peers counted; true for a PD elsewhere."""
    if tc.spec.pd is None:
        return True
    pd = tc.status.pd
    quorum = (tc.spec.pd.replicas + len(pd.peer_members)) // 2 + 1
    healthy_peers = sum(member.health for member in pd.peer_members.values())
    healthy = sum(member.health for member in pd.members.values())
    return (
        _serves(pd)
        and len(pd.members) + len(pd.peer_members) >= quorum
        and healthy + healthy_peers >= quorum
        and _number(pd.stateful_set, "readyReplicas") + healthy_peers >= quorum
    )


def tikv_is_available(tc: TidbCluster) -> bool:
    """Whether at least one store is Up and at least one is Ready, peers counted."""
    tikv = tc.status.tikv
    up_peers = sum(_up(tikv.peer_stores))
    return (
        _serves(tikv)
        and sum(_up(tikv.stores)) + up_peers >= 1
        and _number(tikv.stateful_set, "readyReplicas") + up_peers >= 1
    )


def pump_is_available(tc: TidbCluster) -> bool:
    """Whether at least one Pump is online."""
    pump = tc.status.pump
    return pump.phase != "Suspend" and any(member.state == PUMP_ONLINE for member in pump.members)


def _all_ready(tc: TidbCluster, component: str, well: Iterable[bool]) -> bool:
    if find(tc, component) is None or not is_synced(tc, component):
        return False
    members = list(well)
    return desired_replicas(tc, component) == len(members) and all(members)


def _serves(status: PDStatus | TiKVStatus) -> bool:
    """Whether a component was observed, runs in a StatefulSet and is not suspended."""
    return status.synced and status.stateful_set is not None and status.phase != "Suspend"


def _up(stores: Mapping[str, TiKVStore]) -> list[bool]:
    return [store.state == STORE_UP for store in stores.values()]


def _number(stateful_set: Json | None, key: str) -> int:
    """A count from the status of a StatefulSet, 0 when absent."""
    return int((stateful_set or {}).get(key) or 0)
