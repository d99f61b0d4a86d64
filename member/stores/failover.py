"""The replacement of lost stores (lifecycle.md 9.3).

The operator records the loss, which adds one pod at once. The lost store, its pod and its volumes stay as they are: PD
restores the data from other replicas, and the store may recover. When the user asks for it, the operator removes the
records, and with them the extra pods.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from apis.component_statuses import StoresStatus
from apis.shared import TiKVFailureStore, TiKVStore
from apis.times import stamp
from dataplane.pd import DISCONNECTED, DOWN, UP
from member import api_clients
from member.actions import RemoveStore
from member.context import ReconcileContext
from member.evidence import Evidence, store_gone
from member.failover.node_failure import automatic_or_wait, handle_failed_hosts, is_automatic, wait_for_replacement
from member.failover.steps import (
    RECOVERY,
    UNHEALTHY,
    all_ready,
    claim_uids,
    clean_up,
    clear_requested,
    ignorable,
    incident,
    limit,
    limit_reached,
    live_status,
    record_event,
    remaining,
    serving_instead,
    still_waiting,
    substitute_lost,
    to_record,
    well_unseen,
)
from member.failover.witnesses import Failing, desired_pods, failing, is_cut_off
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.stores.kind import StoreKind


async def failover(ctx: ReconcileContext, kind: StoreKind) -> Outcome:
    """Replace lost stores. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    status = kind.status_in(ctx)
    if await clear_requested(ctx, kind.name, bool(status.failure_stores)):
        _set_records(ctx, kind, {})
    if not status.synced:
        ctx.memory.failure_timers.reset(kind.name)
        return Done()
    _drop_undesired(ctx, kind)
    if _may_recover(ctx, kind):
        names = ", ".join(record.pod_name for record in status.failure_stores.values())
        _set_records(ctx, kind, {})
        await record_event(
            ctx,
            RECOVERY,
            f"all requested {kind.title} stores are Up again, including {names}",
            is_warning=False,
        )
    return await _replace(ctx, kind)


def down_stores(status: StoresStatus) -> dict[str, str]:
    """The stores that PD has given up, with their pods.

    A Disconnected store does not count: it may recover any moment.
    """
    return {store.id: store.pod_name for store in status.stores.values() if store.state == DOWN}


def _last_heard(ctx: ReconcileContext, key: str) -> datetime | None:
    """The time of a store's last heartbeat to PD; None if unknown."""
    beat = next((store.last_heartbeat for store in ctx.stores if str(store.id) == key), 0)
    return datetime.fromtimestamp(beat / 1e9, UTC) if beat else None


def ignored_pods(ctx: ReconcileContext, kind: StoreKind) -> set[str]:
    """The pods that a roll ignores: lost pods that are recorded and replaced, and substitutes without a store."""
    if not kind.status_in(ctx).failure_stores:
        return set()
    lost = {record.pod_name for record in kind.status_in(ctx).failure_stores.values()}
    stores = _stores_by_pod(ctx, kind)
    # Disconnected is the state of a store during a restart
    ill = {pod for pod in lost if pod not in stores or stores[pod].state not in (UP, DISCONNECTED)}
    return ignorable(ctx, kind.name, ill, stores)


async def _replace(ctx: ReconcileContext, kind: StoreKind) -> Outcome:
    status, spec, period = kind.status_in(ctx), kind.spec(ctx.tc.spec), kind.period(ctx.settings.failover)
    recorded = {record.pod_name for record in status.failure_stores.values()}
    desired = desired_pods(ctx, kind.name)
    all_lost = failing(ctx, kind.name, down_stores(status), lambda key: _last_heard(ctx, key))
    lost = [each for each in all_lost if each.pod in desired and each.pod not in recorded]
    most = limit(ctx, spec.max_failover_count if spec else 0)
    if not most or is_cut_off(ctx, kind.name):
        return Done()
    if waiting := await handle_failed_hosts(ctx, kind.name, status.failure_stores, all_lost) or await _remove_stores(
        ctx, kind
    ):
        return waiting
    if new := to_record(lost, len(recorded), most, period):
        return well_unseen(ctx, kind.name, [each.pod for each in new]) or await _record(ctx, kind, new)
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(ctx, kind.name, len(recorded), over[0])
    if lost:
        return still_waiting(ctx, kind.name, f"{kind.title}StoreDown", lost, period)
    return _serving_instead(ctx, kind, to_record([each for each in all_lost if each.pod not in desired], 0, 1, period))


async def _remove_stores(ctx: ReconcileContext, kind: StoreKind) -> Waiting | None:
    """Remove the stores of machines that are down for good from PD, so that their pods can start on new volumes.

    Only if the user has enabled it by annotation (9.3 step 3).
    """
    if not is_automatic(ctx):
        return None
    for key, record in kind.status_in(ctx).failure_stores.items():
        if record.host_down and not record.store_deleted:
            return await _remove(ctx, kind, key, record)
    return None


async def _remove(ctx: ReconcileContext, kind: StoreKind, key: str, record: TiKVFailureStore) -> Waiting:
    recorded = live_status(ctx)
    if kind.status(recorded.status).failure_stores.get(key) != record:
        return Waiting(
            "CacheOutdated",
            f"waiting for the operator's cache to show the failure record of pod {record.pod_name}",
            0.5,
        )
    allowed = automatic_or_wait(ctx)
    if isinstance(allowed, Waiting):
        return allowed
    store = kind.status_in(ctx).stores.get(key)
    if store and store.state == DOWN:
        return wait_for_replacement(ctx, kind.name, record) or await _delete_store(
            ctx, kind, record, recorded & allowed
        )
    gone = store_gone(ctx, int(record.store_id), "")
    if gone is None:
        what = f"waiting until store {record.store_id} of pod {record.pod_name} is Tombstone"
        return Waiting(f"{kind.title}Failover", what, next_poll(ctx, kind.name))
    await clean_up(ctx, kind.name, record.pod_name, record.pvc_uid_set, gone & allowed)
    record.store_deleted = True
    return Waiting(f"{kind.title}Failover", f"{gone.what}; starting pod {record.pod_name} on new volumes")


async def _delete_store(
    ctx: ReconcileContext, kind: StoreKind, record: TiKVFailureStore, recorded: Evidence
) -> Waiting:
    pd = api_clients.pd(ctx)
    live = pd.store(int(record.store_id))
    if live.state_name == DOWN and live.address.startswith(f"{record.pod_name}."):
        await RemoveStore(pd, live, recorded)
        await record_event(
            ctx, RECOVERY, f"removing store {live.id} of pod {record.pod_name} from PD: its host is down"
        )
    what = f"waiting until store {record.store_id} of pod {record.pod_name} is Tombstone"
    return Waiting(f"{kind.title}Failover", what, next_poll(ctx, kind.name))


async def _record(ctx: ReconcileContext, kind: StoreKind, lost: Sequence[Failing]) -> Waiting:
    known = kind.status_in(ctx).failure_stores
    _set_records(ctx, kind, known | {each.key: await _record_of(ctx, kind, each) for each in lost})
    names = ", ".join(each.pod for each in lost)
    return Waiting(f"{kind.title}Failover", f"{names}: the store is Down; starting another pod in its place")


async def _record_of(ctx: ReconcileContext, kind: StoreKind, lost: Failing) -> TiKVFailureStore:
    what = f"store {lost.key} of pod {lost.pod} has been Down since {stamp(lost.since)}; replacing it"
    record = TiKVFailureStore(
        pod_name=lost.pod,
        store_id=lost.key,
        pvc_uid_set=claim_uids(ctx, kind.name, lost.pod),
        created_at=stamp(ctx.deps.clock.wall()),
    )
    await record_event(ctx, UNHEALTHY, what)
    return record


def _serving_instead(ctx: ReconcileContext, kind: StoreKind, lost_substitutes: Sequence[Failing]) -> Outcome:
    """The outcome when there is nothing left to replace."""
    status, lost = kind.status_in(ctx), [record.pod_name for record in kind.status_in(ctx).failure_stores.values()]
    way_back = f"set spec.{kind.name}.failover.recoverByUID: {status.failover_uid} to remove the extra pod"
    if _are_up(ctx, kind, lost):
        # regardless of whether the substitutes have ever started
        return serving_instead(ctx, kind.name, f"{kind.title}FailedOver", lost, f"its store is Up again: {way_back}")
    if lost_substitutes:
        return substitute_lost(ctx, kind.name, lost_substitutes[0])
    if not _are_up(ctx, kind, remaining(ctx, kind.name, lost)):
        return Done()
    uncopied = _uncopied(ctx, kind)
    then = f"{uncopied}once its store is Up again, {way_back}"
    outcome = serving_instead(ctx, kind.name, f"{kind.title}FailedOver", lost, then)
    return replace(outcome, serves=False) if uncopied and isinstance(outcome, Waiting) else outcome


def _uncopied(ctx: ReconcileContext, kind: StoreKind) -> str:
    """The message about lost stores that still hold regions: PD cannot copy a region that has lost its majority."""
    recorded = {record.store_id for record in kind.status_in(ctx).failure_stores.values()}
    left = [str(store.id) for store in ctx.stores if str(store.id) in recorded and store.region_count]
    if not left:
        return ""
    return (
        f"store {', '.join(left)} still holds regions, which PD copies unless they have lost their majority: then "
        "restore a lost store, or give them up with pd-ctl's unsafe remove-failed-stores; "
    )


def _drop_undesired(ctx: ReconcileContext, kind: StoreKind) -> None:
    """Drop the records of pods that the spec no longer wants: each would keep an extra pod without need (F33)."""
    wanted, records = set(desired_pods(ctx, kind.name)), kind.status_in(ctx).failure_stores
    _set_records(ctx, kind, {key: record for key, record in records.items() if record.pod_name in wanted})


def _may_recover(ctx: ReconcileContext, kind: StoreKind) -> bool:
    """True if the user wants the extra pods removed, and all other stores serve (6.4 step 10)."""
    status, spec = kind.status_in(ctx), kind.spec(ctx.tc.spec)
    if not status.failure_stores or spec is None:
        return False
    by_uid = spec.failover is not None and spec.failover.recover_by_uid == status.failover_uid != ""
    if not spec.recover_failover and not by_uid:
        return False
    return _are_up(ctx, kind, desired_pods(ctx, kind.name)) and all_ready(ctx, kind.name)


def _are_up(ctx: ReconcileContext, kind: StoreKind, pods: Collection[str]) -> bool:
    """True if the stores of all these pods are Up."""
    stores = _stores_by_pod(ctx, kind)
    return all(pod in stores and stores[pod].is_up for pod in pods)


def _set_records(ctx: ReconcileContext, kind: StoreKind, records: dict[str, TiKVFailureStore]) -> None:
    """Set the failure records. They all belong to one incident, which ends with the last record."""
    status = kind.status_in(ctx)
    status.failure_stores = records
    if not records:
        status.failover_uid = ""
    elif not status.failover_uid:
        status.failover_uid = incident(ctx, min(records))


def _stores_by_pod(ctx: ReconcileContext, kind: StoreKind) -> Mapping[str, TiKVStore]:
    """The store of each pod; the newest if a pod has several."""
    stores = sorted(kind.status_in(ctx).stores.values(), key=lambda store: int(store.id))
    return {store.pod_name: store for store in stores}
