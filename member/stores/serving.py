"""How stores of a kind serve: the desired state, their scale-out, and outages (lifecycle.md 5.3, 6.5, 8.4)."""

from apis import predicates
from apis.shared import TiKVStore
from dataplane.errors import DataPlaneError
from dataplane.pd import DISCONNECTED, DOWN
from member import api_clients
from member.availability import Server, Verdict, of_servers, of_stores
from member.context import ReconcileContext
from member.evidence import no_store
from member.failover.outages import is_observed, seen_of_pods, trouble_of_server
from member.failover.steps import named
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.stateless import scale_out_parallelism
from member.observed.pods import pods_of, wanted_pods
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.stores.kind import StoreKind

_USUAL_REPLICAS = 3
"""Replicas of a region, if PD does not answer."""
_SILENT = (DISCONNECTED, DOWN)
"""States of a store from which PD hears nothing. An Offline store serves until its data has moved."""


def stores_up(ctx: ReconcileContext, kind: StoreKind) -> Outcome:
    """Done if all stores are Up; otherwise the wait, with what is missing. Called when all pods are Ready."""
    stores = kind.status_in(ctx).stores
    if predicates.all_members_ready(ctx.tc, kind.name):
        return Done(f"{len(stores)} of {len(stores)} stores are Up")
    ill = [f"{store.pod_name} is {store.state}" for store in stores.values() if not store.is_up]
    known = {store.pod_name for store in stores.values()}
    ill += [f"{named(ctx, kind.name, pod)} has no store" for pod in wanted_pods(ctx, kind.name) if pod not in known]
    up = f"{sum(store.is_up for store in stores.values())} stores are Up"
    return Waiting("StoresNotUp", f"{up}; {', '.join(ill)}" if ill else up, next_poll(ctx, kind.name))


def scale_out(kind: StoreKind) -> ScaleOut:
    """The scale-out procedure of a kind of stores."""
    return ScaleOut(
        limit=scale_out_parallelism,
        allowed=lambda ctx: _stores_known(ctx, kind),
        is_member=lambda ctx, pod: any(store.pod_name == pod for store in kind.status_in(ctx).stores.values()),
        volumes_unused=lambda ctx, pod: no_store(ctx, kind.name, pod),
    )


def _stores_known(ctx: ReconcileContext, kind: StoreKind) -> Waiting | None:
    """The wait for a current report of PD: only PD knows which pods have a store (F7)."""
    if kind.status_in(ctx).synced:
        return None
    what = f"waiting for PD to report the {kind.title} stores before scaling out"
    return Waiting("StoresUnknown", what, next_poll(ctx, kind.name))


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
