"""The present status of stores according to PD, whether they serve, and their outages (lifecycle.md 5.3, 5.4, 6.5)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from apis import predicates
from apis.component_statuses import StoresStatus, TiKVStatus
from apis.shared import TiKVStore
from dataplane.addresses import Stranger
from dataplane.errors import AddressNotUnderstood, DataPlaneError, NotBootstrapped
from dataplane.pd import DISCONNECTED, DOWN, TOMBSTONE, Store
from member import api_clients
from member.availability import Server, Verdict, of_servers, of_stores
from member.context import ReconcileContext
from member.evidence import no_store
from member.failover.outages import is_observed, seen_of_pods, trouble_of_server
from member.failover.steps import named
from member.lifecycle.scaling import ScaleOut
from member.lifecycle.stateless import scale_out_parallelism
from member.observed.pods import pods_of, wanted_pods
from member.observed.referenced_cluster import joined_cluster
from member.observed.status import observe_pods, transition_time
from member.outcome import Done, Failed, Outcome, Waiting
from member.ownership import Owner, owned_stores, require_understood_stores
from member.polling import next_poll
from member.stores.failover import ignored_pods
from member.stores.kind import StoreKind
from member.stores.reports import has_store, known_to_run, without_store

_TOLERANCE = 0.1
_BELIEVED_AFTER = 30.0
"""Seconds until the operator believes that a store has moved to another pod.

A user may move a volume by hand. A member of PD that contradicts the others moves stores to and fro.
"""


def observe(ctx: ReconcileContext, kind: StoreKind) -> Outcome:
    """Update the status of a kind. Without an answer about PD's own members, PD is not asked for stores."""
    if kind.spec(ctx.tc.spec) is None:
        return Done()
    status = kind.status_in(ctx)
    status.synced = False
    if observe_pods(ctx, kind.name, status, ignored_pods(ctx, kind)) is None:
        return Done()
    if ctx.tc.spec.pd is not None and not ctx.status.pd.synced:
        return Waiting("PDNotAnswering", "the stores are unknown while PD does not answer")
    outcome = _ask(ctx, kind, status)
    status.synced = isinstance(outcome, Done)
    return outcome


def _ask(ctx: ReconcileContext, kind: StoreKind, status: StoresStatus) -> Outcome:
    try:
        listed = ctx.listed_stores
        if listed is None:
            listed = api_clients.pd_answers(ctx).all_stores()
    except NotBootstrapped:
        if status.stores:
            what = f"PD reports that no TiKV has registered, though store {', '.join(status.stores)} has"
            return Failed("StoresUnknown", f"{what}: nothing is decided on that")
        _set_boot_strapped(status, False)
        return Done()
    except DataPlaneError as error:
        whose = f"PD belongs to {joined_cluster(ctx.tc)}; " if ctx.tc.spec.pd is None else ""
        return Failed("PDUnreachable", f"{whose}{error}")
    stores = tuple(store for store in listed if store.state_name != TOMBSTONE)
    tombstones = [store for store in listed if store.state_name == TOMBSTONE]
    owned = owned_stores(ctx.tc, kind.name, stores)
    if doubt := _lost(status, stores, tombstones) or _moved(ctx, kind, status, owned):
        return Failed("StoresUnknown", f"PD reports {doubt}")
    ctx.stores = stores
    _set_stores(ctx, status, owned)
    try:
        require_understood_stores(owned)
    except AddressNotUnderstood as error:
        return Failed("AddressNotUnderstood", str(error))
    now = ctx.deps.clock.wall()
    status.tombstone_stores = {
        str(store.id): _store(store, status.tombstone_stores.get(str(store.id)), now)
        for store, owner in owned_stores(ctx.tc, kind.name, tombstones)
        if store.complete and not isinstance(owner, Stranger)
    }
    _set_boot_strapped(status, True)
    _note_pods(ctx, kind)
    return Done()


def _lost(status: StoresStatus, stores: Sequence[Store], tombstones: Sequence[Store]) -> str:
    """The sentence about a list without any store, although some have not been removed; empty for any other list."""
    gone = {str(store.id) for store in tombstones}
    lost = [store for store in status.stores if store not in gone]
    # absence is no evidence (R19): records about these stores, e.g. evictions, must stay
    return f"no stores, not even {', '.join(lost)}; ignoring its answer" if lost and not stores else ""


def _moved(ctx: ReconcileContext, kind: StoreKind, status: StoresStatus, owned: Iterable[tuple[Store, Owner]]) -> str:
    """The sentence about own stores at other pods than before; empty if PD has reported this for long."""
    moves = {}
    for store, owner in owned:
        old = status.stores.get(str(store.id))
        if old is not None and not isinstance(owner, Stranger) and (pod := _pod_name(store)) != old.pod_name:
            moves[f"{store.id} at {pod}"] = f"store {store.id} at pod {pod}, until now at {old.pod_name}"
    lasting = ctx.memory.failure_timers.update(f"moved {kind.name}", moves, ctx.deps.clock)
    if not (new := [sentence for move, sentence in moves.items() if lasting[move].seconds < _BELIEVED_AFTER]):
        return ""
    return f"{', '.join(new)}; ignoring its answer until it stays the same for {_BELIEVED_AFTER:.0f} s"


def _set_boot_strapped(status: StoresStatus, found: bool) -> None:
    if isinstance(status, TiKVStatus):
        status.boot_strapped = found


def _set_stores(ctx: ReconcileContext, status: StoresStatus, owned: Iterable[tuple[Store, Owner]]) -> None:
    """Divide the stores of a kind into the cluster's own and peers'."""
    now = ctx.deps.clock.wall()
    before = status.peer_stores | status.stores
    status.stores, status.peer_stores = {}, {}
    for store, owner in owned:
        if not store.complete:
            continue
        record = _store(store, before.get(str(store.id)), now)
        (status.peer_stores if isinstance(owner, Stranger) else status.stores)[record.id] = record


def _note_pods(ctx: ReconcileContext, kind: StoreKind) -> None:
    """Start measuring how long containers have run, and how long pods have had no store, for use by later steps."""
    known = {store.pod_name for store in kind.status_in(ctx).stores.values()}
    for pod in pods_of(ctx, kind.name):
        known_to_run(ctx, kind, pod)
        if pod.metadata.name in known:
            has_store(ctx, pod)
        else:
            without_store(ctx, pod)


def _store(store: Store, old: TiKVStore | None, now: datetime) -> TiKVStore:
    return TiKVStore(
        id=str(store.id),
        pod_name=_pod_name(store),
        ip=store.address.rpartition(":")[0],
        leader_count=_leader_count(store.leader_count, old),
        state=store.state_name,
        last_transition_time=transition_time(old, old is not None and old.state == store.state_name, now),
        leader_count_before_upgrade=old.leader_count_before_upgrade if old else None,
    )


def _pod_name(store: Store) -> str:
    return store.address.rpartition(":")[0].partition(".")[0]


def _leader_count(now: int, old: TiKVStore | None) -> int:
    """The number of leaders, true to a tenth: PD moves leaders all the time, and each would be a write (I29)."""
    if old is not None and abs(now - old.leader_count) <= _TOLERANCE * max(now, old.leader_count):
        return old.leader_count
    return now


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
    known = Counter(store.pod_name for store in stores.values())
    ill += [f"PD lists {count} stores for {pod}" for pod, count in known.items() if count > 1]
    ill += [f"{named(ctx, kind.name, pod)} has no store" for pod in wanted_pods(ctx, kind.name) if pod not in known]
    up = f"{sum(store.is_up for store in stores.values())} stores are Up"
    return Waiting("StoresNotUp", f"{up}; {', '.join(ill)}" if ill else up, next_poll(ctx, kind.name))


def scale_out(kind: StoreKind) -> ScaleOut:
    """The scale-out procedure of a kind of stores."""
    return ScaleOut(
        limit=scale_out_parallelism,
        allowed=lambda ctx: _wait_for_stores(ctx, kind),
        is_member=lambda ctx, pod: any(store.pod_name == pod for store in kind.status_in(ctx).stores.values()),
        volumes_unused=lambda ctx, pod: no_store(ctx, kind.name, pod),
    )


def _wait_for_stores(ctx: ReconcileContext, kind: StoreKind) -> Waiting | None:
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
    seen = seen_of_pods(ctx, kind.name, (Server(store.pod_name, _trouble(ctx, kind, store)) for store in stores))
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
