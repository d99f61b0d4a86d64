"""The present status of stores, according to PD (lifecycle.md 5.3, 5.4). Reads only."""

from datetime import datetime

from apis.component_statuses import StoresStatus, TiKVStatus
from apis.shared import TiKVStore
from apis.tidbcluster import TidbCluster
from dataplane.errors import AddressNotUnderstood, DataPlaneError, NotBootstrapped
from dataplane.pd import TOMBSTONE, Store
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book
from member.observed.pods import pods_of
from member.observed.referenced_cluster import joined_cluster
from member.observed.status import observe_pods, transition_time
from member.outcome import Done, Failed, Outcome, Waiting
from member.ownership import require_understood_stores
from member.stores.failover import ignored_pods
from member.stores.kind import StoreKind
from member.stores.reports import has_store, known_to_run, without_store

_TOLERANCE = 0.1


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
        listed = api_clients.pd_answers(ctx).all_stores()
    except NotBootstrapped:
        if status.stores:
            what = f"PD reports that no TiKV has registered, though store {', '.join(status.stores)} has"
            return Failed("StoresUnknown", f"{what}: nothing is decided on that")
        _set_boot_strapped(status, False)
        return Done()
    except DataPlaneError as error:
        whose = f"PD is that of {joined_cluster(ctx.tc)}; " if ctx.tc.spec.pd is None else ""
        return Failed("PDUnreachable", f"{whose}{error}")
    stores = tuple(store for store in listed if store.state_name != TOMBSTONE)
    tombstones = [store for store in listed if store.state_name == TOMBSTONE]
    gone = {str(store.id) for store in tombstones}
    if not stores and (lost := [each for each in status.stores if each not in gone]):
        # absence is no evidence (R19): records about these stores, e.g. evictions, must stay
        return Failed("StoresUnknown", f"PD reports no stores, not even {', '.join(lost)}; ignoring its answer")
    ctx.stores = stores
    _set_stores(ctx, kind, status, stores)
    try:
        require_understood_stores(ctx.tc, kind.name, stores)
    except AddressNotUnderstood as error:
        return Failed("AddressNotUnderstood", str(error))
    now = ctx.deps.clock.wall()
    status.tombstone_stores = {
        str(store.id): _store(store, status.tombstone_stores.get(str(store.id)), now)
        for store in tombstones
        if store.complete and _is_own(ctx.tc, kind, store)
    }
    _set_boot_strapped(status, True)
    _note_pods(ctx, kind)
    return Done()


def _set_boot_strapped(status: StoresStatus, found: bool) -> None:
    if isinstance(status, TiKVStatus):
        status.boot_strapped = found


def _set_stores(ctx: ReconcileContext, kind: StoreKind, status: StoresStatus, stores: tuple[Store, ...]) -> None:
    """Divide the stores of a kind into the cluster's own and peers'; address and label decide (F31)."""
    now = ctx.deps.clock.wall()
    before = status.peer_stores | status.stores
    status.stores, status.peer_stores = {}, {}
    for store in stores:
        if not store.complete or not kind.has(store):
            continue
        record = _store(store, before.get(str(store.id)), now)
        (status.stores if _is_own(ctx.tc, kind, store) else status.peer_stores)[record.id] = record


def _note_pods(ctx: ReconcileContext, kind: StoreKind) -> None:
    """Start measuring how long containers have run, and how long pods have had no store, for use by later steps."""
    known = {store.pod_name for store in kind.status_in(ctx).stores.values()}
    for pod in pods_of(ctx, kind.name):
        known_to_run(ctx, kind, pod)
        if pod.metadata.name in known:
            has_store(ctx, pod)
        else:
            without_store(ctx, pod)


def _is_own(tc: TidbCluster, kind: StoreKind, store: Store) -> bool:
    return kind.has(store) and address_book(tc).ordinal_of(kind.name, store.address) is not None


def _store(store: Store, old: TiKVStore | None, now: datetime) -> TiKVStore:
    host = store.address.rpartition(":")[0]
    return TiKVStore(
        id=str(store.id),
        pod_name=host.partition(".")[0],
        ip=host,
        leader_count=_leader_count(store.leader_count, old),
        state=store.state_name,
        last_transition_time=transition_time(old, old is not None and old.state == store.state_name, now),
        leader_count_before_upgrade=old.leader_count_before_upgrade if old else None,
    )


def _leader_count(now: int, old: TiKVStore | None) -> int:
    """The number of leaders, true to a tenth: PD moves leaders all the time, and each would be a write (I29)."""
    if old is not None and abs(now - old.leader_count) <= _TOLERANCE * max(now, old.leader_count):
        return old.leader_count
    return now
