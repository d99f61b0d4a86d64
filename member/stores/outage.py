"""Outages of stores, according to PD's reports (lifecycle.md 5.3)."""

from apis.shared import TiKVStore
from dataplane.errors import DataPlaneError
from dataplane.pd import DISCONNECTED, DOWN
from member import api_clients
from member.availability import Server, Verdict, of_servers, of_stores
from member.context import ReconcileContext
from member.failover.outages import is_observed, seen_of_pods, trouble_of_server
from member.observed.pods import pods_of
from member.stores.kind import StoreKind

_USUAL_REPLICAS = 3
"""Replicas of a region, if PD does not answer."""

_SILENT = (DISCONNECTED, DOWN)
"""States of a store from which PD hears nothing. An Offline store serves until its data has moved."""


def outage(ctx: ReconcileContext, kind: StoreKind) -> Verdict | None:
    """The verdict on the stores of a kind; None while they serve or PD does not report them."""
    status = kind.status_in(ctx)
    stores = [*status.stores.values(), *status.peer_stores.values()]
    # silent stores of another cluster are an outage of that cluster
    if not is_observed(ctx, kind.name) or not any(map(_is_silent, status.stores.values())):
        return None
    seen = seen_of_pods(ctx, kind.name, (Server(each.pod_name, _trouble(ctx, kind, each)) for each in stores))
    return of_servers(seen) if kind.replicas is None else of_stores(seen, _replicas(ctx, kind))


def _is_silent(store: TiKVStore) -> bool:
    return store.state in _SILENT


def _trouble(ctx: ReconcileContext, kind: StoreKind, store: TiKVStore) -> str:
    """The state of a silent store, and what keeps its pod from running if the pod is in this cluster."""
    if not _is_silent(store):
        return ""
    pod = next((each for each in pods_of(ctx, kind.name) if each.metadata.name == store.pod_name), None)
    known = trouble_of_server(ctx, kind.name, pod) if pod else ""
    return f"{store.state}; {known}" if known else store.state


def _replicas(ctx: ReconcileContext, kind: StoreKind) -> int:
    try:
        return kind.replicas(api_clients.pd_answers(ctx)) if kind.replicas else _USUAL_REPLICAS
    except DataPlaneError:
        return _USUAL_REPLICAS
