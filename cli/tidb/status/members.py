"""The data plane's view of a component's pods, from the status. Pure."""

from collections.abc import Iterator, Mapping
from functools import singledispatch

from apis.component_statuses import (
    PUMP_ONLINE,
    PDMSStatus,
    PDStatus,
    PumpStatus,
    TiCDCStatus,
    TiDBStatus,
    TiFlashStatus,
    TiKVStatus,
    TiProxyStatus,
)
from apis.dm_components import DMMasterStatus, DMWorkerStatus
from apis.shared import ComponentStatus, PDMember, TiKVFailureStore, TiKVStore
from cli.tidb.status.report import Failure, Member


@singledispatch
def members(_status: ComponentStatus) -> dict[str, Member]:
    """The members by pod; empty for a component without members."""
    return {}


@members.register
def _of_pd(status: PDStatus) -> dict[str, Member]:
    return _voters(status.members, status.leader)


@members.register
def _of_masters(status: DMMasterStatus) -> dict[str, Member]:
    return _voters(status.members, status.leader)


def _voters(known: Mapping[str, PDMember], leader: PDMember | None) -> dict[str, Member]:
    leads = leader.name if leader else ""
    return {
        _pod(name): Member(each.id, _health(healthy=each.health), each.health, leads=name == leads)
        for name, each in known.items()
    }


@members.register
def _of_microservice(status: PDMSStatus) -> dict[str, Member]:
    return {_pod(member.rpartition("//")[2]): Member("", "registered", True) for member in status.members}


@members.register
def _of_tikv(status: TiKVStatus) -> dict[str, Member]:
    return _stores(status.stores)


@members.register
def _of_tiflash(status: TiFlashStatus) -> dict[str, Member]:
    return _stores(status.stores)


def _stores(known: Mapping[str, TiKVStore]) -> dict[str, Member]:
    return {
        store.pod_name: Member(store.id, store.state, store.is_up, leaders=store.leader_count)
        for store in known.values()
    }


@members.register
def _of_tidb(status: TiDBStatus) -> dict[str, Member]:
    return _servers(status)


@members.register
def _of_tiproxy(status: TiProxyStatus) -> dict[str, Member]:
    return _servers(status)


def _servers(status: TiDBStatus | TiProxyStatus) -> dict[str, Member]:
    return {pod: Member("", _health(healthy=healthy), healthy) for pod, healthy in status.servers.items()}


@members.register
def _of_ticdc(status: TiCDCStatus) -> dict[str, Member]:
    return {
        pod: Member(each.id, "ready" if each.ready else "not ready", each.ready, leads=each.is_owner)
        for pod, each in status.captures.items()
    }


@members.register
def _of_pump(status: PumpStatus) -> dict[str, Member]:
    return {
        _pod(member.host): Member(member.node_id, member.state, member.state == PUMP_ONLINE)
        for member in status.members
    }


@members.register
def _of_workers(status: DMWorkerStatus) -> dict[str, Member]:
    return {pod: Member("", each.stage, each.serves) for pod, each in status.members.items()}


@singledispatch
def failures(_status: ComponentStatus, _component: str) -> Iterator[Failure]:
    """The records of failover; empty for a component without failover."""
    return iter(())


@failures.register
def _members_of_pd(status: PDStatus, component: str) -> Iterator[Failure]:
    for record in status.failure_members.values():
        yield Failure(component, record.pod_name, record.member_id, record.created_at or "", record.host_down)


@failures.register
def _masters(status: DMMasterStatus, component: str) -> Iterator[Failure]:
    for record in status.failure_members.values():
        yield Failure(component, record.pod_name, record.member_id, record.created_at or "", False)


@failures.register
def _stores_of_tikv(status: TiKVStatus, component: str) -> Iterator[Failure]:
    return _lost_stores(status.failure_stores, component)


@failures.register
def _stores_of_tiflash(status: TiFlashStatus, component: str) -> Iterator[Failure]:
    return _lost_stores(status.failure_stores, component)


def _lost_stores(known: Mapping[str, TiKVFailureStore], component: str) -> Iterator[Failure]:
    for record in known.values():
        yield Failure(component, record.pod_name, record.store_id, record.created_at or "", record.host_down)


@failures.register
def _servers_of_tidb(status: TiDBStatus, component: str) -> Iterator[Failure]:
    for record in status.failure_members.values():
        yield Failure(component, record.pod_name, "", record.created_at or "", False)


@failures.register
def _workers(status: DMWorkerStatus, component: str) -> Iterator[Failure]:
    for record in status.failure_members.values():
        yield Failure(component, record.pod_name, "", record.created_at or "", False)


def _pod(host: str) -> str:
    """The pod of a member's name or host."""
    return host.partition(".")[0]


def _health(*, healthy: bool) -> str:
    return "healthy" if healthy else "unhealthy"
