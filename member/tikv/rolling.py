"""Rolling restarts of TiKV: region leaders move away before a pod restarts, and return afterwards (lifecycle.md 7.4).

This process measures the time that leaders have to move, because a wall clock may jump (F14, F44).

Three marks survive this process and show what is still to do. The store's status has the number of leaders: it is
written before anything else, and kept until they have returned. The pod has the time when its eviction began or ended.
PD has the scheduler, which decides whether leaders move (F17). The operator removes a scheduler without a mark from a
store that it has evicted: a late request has created it (F16). It keeps other users' schedulers, and emits an event.

With another storage class in the spec, the volumes of a pod change between its eviction and its restart, as in v1.6
(VMOD-9).

While a log backup runs, TiKV then flushes what it holds of it, or its checkpoint would stand still until the next TiKV
has read everything again. The call runs beside the reconciles, which only read its answer.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from structlog.contextvars import bound_contextvars

from apis import pod_commands, predicates
from apis.ordinals import desired_ordinals
from apis.shared import TiKVStore
from apis.times import parse_time, stamp
from dataplane.errors import BadTlsMaterial, DataPlaneError
from dataplane.log_backups import FLUSH_TIMEOUT, is_not_offered, log_task_names
from dataplane.pd import PDClient
from kube.actions import Apply, Emit
from kube.events import NORMAL, WARNING
from kube.objects import Object
from kube.resources import PODS
from member import api_clients, labels
from member.actions import EndEviction, FlushLogBackup
from member.context import ReconcileContext
from member.evidence import Spared, spared
from member.lifecycle.roll_view import is_available
from member.lifecycle.rolling import Rolling, Silence, tell_restart
from member.memory import Stopwatch
from member.naming import ordinal_of
from member.observed.claims import claims_of
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import NotDone, Waiting, poll_interval
from member.polling import poll_on_progress
from member.startscript.hooks import has_tikv_hooks
from member.stores import evictions
from member.stores.failover import ignored_pods
from member.stores.kind import TIKV_STORES
from member.stores.reports import restarting, store_of
from member.stores.rolling import (
    not_back,
    others_away,
    others_not_up,
    quorum_wait,
    serving_unseen,
    spare_unready,
    stores_unknown,
)
from member.volumes.changes import before_restart
from ports import duration

_MIN_LEADERS = 200
"""The operator does not wait for the leaders of a store that had fewer than this."""

_LISTED = "evictions listed"
_LISTED_AGAIN = 300.0
"""Seconds until PD is asked again which of the stores without leaders are evicted."""

_NEW = timedelta(hours=1)
"""The time in which a recreated cluster may find evictions of its predecessor."""

_FLUSH, _REFUSED = "log backup flush", "log backup flush refused"
_FLUSH_HOLDS = 600.0
"""Seconds until a pod that has not restarted flushes again."""
_FLUSH_TRIES = 30.0
"""Seconds in which a flush that TiKV refuses is requested again; TiKV may be flushing by itself."""
_FLUSH_AGAIN = 10.0

_COMMANDS = (pod_commands.EVICT_LEADER, pod_commands.EVICT_LEADER_FOR_RESIZE)
"""The commands for evictions by users and by the resizer: their schedulers are left alone (13)."""


async def evict(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    """Move the leaders away, one step per reconcile; None if none is left, or after the timeout.

    Raises DataPlaneError, ApiError, TransportError.
    """
    clock, tikv = ctx.deps.clock, ctx.tc.spec.tikv
    limit = duration.seconds((tikv and tikv.evict_leader_timeout) or "0s")
    if store.leader_count_before_upgrade is None:
        # this mark outlives the pod, so it must be stored before there is a scheduler
        store.leader_count_before_upgrade = store.leader_count
        return _evicting(pod, store, "", poll_interval(0.0))
    begun = parse_time(pod.metadata.annotations.get(labels.EVICT_LEADER_BEGIN_TIME, ""))
    if begun is not None and _elapsed(ctx, pod, begun).seconds >= limit:
        # check the timeout before any read that may fail (F18)
        what = f"{_sentence(pod, store)} after {limit:.0f} s; restarting the pod anyway"
        await Emit(ctx.owner, WARNING, "EvictLeaderTimeout", what)
        return None
    pd = api_clients.pd(ctx)
    evicting = pd.evicting_stores()
    doubt = evictions.doubt(ctx, int(store.id), evicting)
    is_first = begun is None
    if begun is None:
        begun = clock.wall().replace(microsecond=0)
        await _annotate(pod, {labels.EVICT_LEADER_BEGIN_TIME: stamp(begun)})
    # an eviction that PD has not carried out is requested again, and its time does not begin again
    if is_first or not evictions.has_begun(ctx, int(store.id), evicting):
        await evictions.begin(ctx, pd, int(store.id))
    if is_first:
        name = pod.metadata.name
        await tell_restart(
            ctx, "tikv", name, f"evicting leaders from pod {name} (store {store.id}), then restarting it"
        )
    elapsed = _elapsed(ctx, pod, begun)
    until, age = f", timeout at {stamp(elapsed.since + timedelta(seconds=limit))}{doubt}", elapsed.seconds
    try:
        left = api_clients.tikv(ctx, pod.metadata.name).leader_count()
    except DataPlaneError as error:
        return _evicting(pod, store, f"{until}; cannot read the current count: {error}", poll_interval(age))
    if left == 0:
        return None
    again = poll_on_progress(store.leader_count_before_upgrade, left, age)
    return _evicting(pod, store, until, again)


async def resume(ctx: ReconcileContext, selected: str) -> Waiting | None:
    """End the operator's evictions that are no longer needed: of every serving pod except `selected`.

    A pod keeps its scheduler until it has been Ready for long enough and its store is Up (F15, F20). Raises the same
    errors as `evict`.
    """
    others = [(pod, store) for pod, store in _without_leaders(ctx) if pod.metadata.name != selected]
    waits = [wait for pod, store in others if _is_marked(pod, store) and (wait := await _end_of(ctx, pod, store))]
    unmarked = [(pod, store) for pod, store in others if not _is_marked(pod, store)]
    await _end_strays(ctx, {int(store.id): pod for pod, store in unmarked if not store.leader_count})
    return waits[0] if waits else None


async def flush_log_backup(ctx: ReconcileContext, pod: Object) -> Waiting | None:
    """Have the TiKV of a pod flush its log backup before it restarts; None once it has, or if no log backup runs.

    It gets three minutes, and 30 seconds if it refuses or cannot be reached. Then an event says that the pod restarts
    without, and why. Raises BadTlsMaterial, ApiError, TransportError, LeaseExpired.
    """
    watches, clock = ctx.memory.stopwatches, ctx.deps.clock
    flushes, uid = ctx.memory.flushes, pod.metadata.uid
    if labels.TIKV_RESTART_WITHOUT_FLUSH_LOG_BACKUP in ctx.tc.metadata.annotations:
        return None
    if flushes.entry(uid, clock.now()) is None:
        if not watches.is_due(_FLUSH, uid, _FLUSH_HOLDS, clock) or not _may_have_log_backup(ctx):
            return None
        watches.forget(_REFUSED, uid)
    lasts = watches.look(_FLUSH, uid, clock)
    try:
        limit, why = FLUSH_TIMEOUT, "TiKV does not answer"
        if await _is_flushed(ctx, pod):
            flushes.drop(uid)
            return None
    except BadTlsMaterial:
        raise
    except DataPlaneError as error:
        flushes.note(uid, None, clock.now())
        limit, why = _patience(error), str(error)
    if lasts.seconds < limit:
        until = stamp(lasts.since + timedelta(seconds=FLUSH_TIMEOUT))
        what = f"waiting until pod {pod.metadata.name} has flushed its log backup"
        return Waiting("FlushingLogBackup", f"{what}, at most until {until}", poll_interval(lasts.seconds), step=what)
    await _give_up_flush(ctx, pod, why)
    return None


def _may_have_log_backup(ctx: ReconcileContext) -> bool:
    """False if PD says that no log backup runs; if it does not say, TiKV knows."""
    try:
        return bool(log_task_names(api_clients.etcd(ctx)))
    except BadTlsMaterial:
        raise
    except DataPlaneError:
        return True


async def _is_flushed(ctx: ReconcileContext, pod: Object) -> bool:
    """True once the TiKV of a pod has flushed; requests the flush first, and again ten seconds after a refusal."""
    flushes, uid, clock = ctx.memory.flushes, pod.metadata.uid, ctx.deps.clock
    flush = flushes.get(uid, clock.now())
    if flush is None and ctx.memory.stopwatches.is_due(_REFUSED, uid, _FLUSH_AGAIN, clock):
        flush = await FlushLogBackup(api_clients.log_backup(ctx, pod.metadata.name))
    flushes.note(uid, flush, clock.now())
    return flush is not None and flush.tasks() is not None


def _patience(error: DataPlaneError) -> float:
    """The seconds for which a flush is requested again after an error; 0 if no repetition helps."""
    return 0.0 if is_not_offered(error) else _FLUSH_TRIES


async def _give_up_flush(ctx: ReconcileContext, pod: Object, why: str) -> None:
    flush = ctx.memory.flushes.drop(pod.metadata.uid)
    if flush is not None:
        flush.give_up()
    what = f"pod {pod.metadata.name} restarts although its log backup is not flushed: {why}"
    effect = "until TiKV has caught up, a restore to a point in time reaches only what was saved before"
    await Emit(ctx.owner, WARNING, "LogBackupNotFlushed", f"{what}; {effect}")


def missing_leaders(store: TiKVStore) -> str:
    """What a store still lacks after an eviction, as the end of "until <pod> ..."; empty if not worth a wait."""
    before = store.leader_count_before_upgrade or 0
    if before < _MIN_LEADERS:
        return ""
    return f"leads its regions again ({store.leader_count} now, {before} before)"


def _without_leaders(ctx: ReconcileContext) -> Iterator[tuple[Object, TiKVStore]]:
    """The pods, with their stores, that were evicted or lead nothing, but serve, stay and have no command."""
    tikv, wanted = ctx.status.tikv, desired_ordinals(ctx.tc, "tikv")
    if not tikv.synced:
        return
    own = ctx.stateful_set("tikv")
    loses_hooks = own is not None and not has_tikv_hooks(own)
    # of two stores of a pod the first counts, as in `store_of`
    stores = {store.pod_name: store for store in reversed(tikv.stores.values())}
    reports = {str(report.id): report for report in ctx.stores}
    for pod in pods_of(ctx, "tikv"):
        name, annotations = pod.metadata.name, pod.metadata.annotations
        store = stores.get(name)
        if store is not None and loses_hooks and has_tikv_hooks(pod):
            # its stop begins an eviction that the hook of no start ends (ADR 19)
            evictions.remember(ctx, int(store.id))
        if store is None or not store.is_up or ordinal_of(name) not in wanted:
            continue
        if store.leader_count and not _is_marked(pod, store):
            continue
        if name in tikv.evict_leader or any(command in annotations for command in _COMMANDS):
            evictions.remember(ctx, int(store.id))
            continue
        reported = reports.get(store.id)
        if reported and any(restarting(ctx, TIKV_STORES, [reported], [pod])):
            continue
        if not pod.metadata.deletion_timestamp and is_available(ctx, "tikv", pod.decode_as(Pod)):
            yield pod, store


def _is_marked(pod: Object, store: TiKVStore) -> bool:
    return store.leader_count_before_upgrade is not None or labels.EVICT_LEADER_BEGIN_TIME in pod.metadata.annotations


async def _end_strays(ctx: ReconcileContext, suspects: Mapping[int, Object]) -> None:
    """Remove schedulers from stores that the operator has evicted, e.g. after a former leader's late request (F16).

    `suspects` are the pods of stores without leaders. PD is asked only if there are some while other stores have
    leaders, so an idle cluster costs no request.
    """
    if not any(store.leader_count for store in ctx.stores):
        return
    key, stopwatches = ", ".join(map(str, sorted(suspects))), ctx.memory.stopwatches
    for other in stopwatches.known(_LISTED):
        if other != key:
            # a new set of suspects is checked at once
            stopwatches.forget(_LISTED, other)
    if not suspects or not stopwatches.is_due(_LISTED, key, _LISTED_AGAIN, ctx.deps.clock):
        return
    pd = api_clients.pd(ctx)
    try:
        evicting = pd.evicting_stores()
    except DataPlaneError:
        # e.g. a new leader of PD that has not loaded its schedulers yet
        stopwatches.forget(_LISTED, key)
        raise
    for store_id in sorted(evicting & suspects.keys()):
        pod = suspects[store_id]
        if store_id in ctx.memory.evicted_stores or _was_made_again(ctx, pod):
            await _end_stray(ctx, pd, store_id, pod.metadata.name)
        elif store_id not in ctx.memory.evicted_by_others:
            await _tell_of_others(ctx, store_id, pod.metadata.name)
    ctx.memory.evicted_by_others.intersection_update(evicting)


def _was_made_again(ctx: ReconcileContext, pod: Object) -> bool:
    """True if the cluster is new but the pod's data is older: then its predecessor's marks are lost."""
    time, now = parse_time(ctx.owner.metadata.creation_timestamp or ""), ctx.deps.clock.wall()
    if time is None or now - time > _NEW:
        return False
    claimed = (parse_time(claim.metadata.creation_timestamp or "") for claim in claims_of(ctx, pod))
    return any(since is not None and since < time for since in claimed)


async def _end_stray(ctx: ReconcileContext, pd: PDClient, store_id: int, pod: str) -> None:
    with bound_contextvars(pod=pod, why="nothing requests it"):
        await EndEviction(pd, store_id)
    what = f"removed the evict-leader scheduler of store {store_id} (pod {pod}): nothing requests it"
    await Emit(ctx.owner, NORMAL, "LeaderEvictionEnded", what)


async def _tell_of_others(ctx: ReconcileContext, store_id: int, pod: str) -> None:
    """Emit one event, so that the user need not ask PD why a pod leads no regions."""
    ctx.memory.evicted_by_others.add(store_id)
    way_out = f"pd-ctl scheduler remove evict-leader-scheduler-{store_id}"
    why = "an evict-leader scheduler in PD, which the operator did not add, keeps its leaders away"
    what = f"store {store_id} (pod {pod}) leads no regions: {why}; to remove it, run {way_out}"
    await Emit(ctx.owner, NORMAL, "LeadersEvictedByOthers", what)


def _elapsed(ctx: ReconcileContext, pod: Object, begun: datetime) -> Stopwatch:
    """The time since an eviction began or ended, as this process has measured it."""
    return ctx.memory.stopwatches.look("eviction", f"{pod.metadata.uid} {stamp(begun)}", ctx.deps.clock)


async def _end_of(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    with bound_contextvars(pod=pod.metadata.name):
        return await _end(ctx, pod, store)


async def _end(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    """Let the leaders return, and remove the marks once enough of them have."""
    annotations, now = pod.metadata.annotations, ctx.deps.clock.wall()
    ended = parse_time(annotations.get(labels.TIKV_EVICT_LEADER_END_AT, ""))
    if ended is None or labels.EVICT_LEADER_BEGIN_TIME in annotations:
        await evictions.end(ctx, api_clients.pd(ctx), int(store.id))
        ended = now
    age = _elapsed(ctx, pod, ended).seconds
    if _leaders_returned(store) or age >= _return_timeout(ctx):
        await _annotate(pod, {})
        store.leader_count_before_upgrade = None
        return None
    await _annotate(pod, {labels.TIKV_EVICT_LEADER_END_AT: stamp(ended)})
    return Waiting(
        "LeadersComingBack", f"waiting until pod {pod.metadata.name} {missing_leaders(store)}", poll_interval(age)
    )


def _leaders_returned(store: TiKVStore) -> bool:
    before = store.leader_count_before_upgrade or 0
    return before < _MIN_LEADERS or store.leader_count >= before * 2 // 3


def _return_timeout(ctx: ReconcileContext) -> float:
    tikv = ctx.tc.spec.tikv
    return duration.seconds((tikv and tikv.wait_leader_transfer_back_timeout) or "0s")


async def _annotate(pod: Object, marks: Mapping[str, str]) -> None:
    """Set these eviction marks on a pod, and remove all others."""
    ours = (labels.EVICT_LEADER_BEGIN_TIME, labels.TIKV_EVICT_LEADER_END_AT)
    meta = pod.metadata
    before = {key: value for key, value in meta.annotations.items() if key in ours}
    identity = {"name": meta.name, "namespace": meta.namespace}
    desired = {"apiVersion": "v1", "kind": "Pod", "metadata": identity | {"annotations": dict(marks)}}
    await Apply(PODS, desired, pod, applied={"metadata": {"annotations": before}})


def _evicting(pod: Object, store: TiKVStore, end: str, again: float) -> Waiting:
    """The wait for an eviction; the count of leaders shows its progress."""
    way_out = (
        "`pd-ctl scheduler show` lists what moves leaders back; to continue sooner, shorten "
        "spec.tikv.evictLeaderTimeout"
    )
    sentence = _sentence(pod, store)
    return Waiting("EvictingLeaders", f"{sentence}{end}", again, step=sentence, way_out=way_out)


def _sentence(pod: Object, store: TiKVStore) -> str:
    """The progress of the eviction, with the count in the status, which does not change with every single leader."""
    return f"evicting leaders from pod {pod.metadata.name} (store {store.id}): {store.leader_count} left"


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    return None if _is_alone(ctx) else stores_unknown(ctx, TIKV_STORES)


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    store = store_of(ctx, TIKV_STORES, pod.metadata.name)
    return not_back(ctx, TIKV_STORES, pod) or (missing_leaders(store) if store else "")


async def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    if _is_alone(ctx):
        return before_restart(ctx, "tikv", pod) or await flush_log_backup(ctx, pod)
    store = store_of(ctx, TIKV_STORES, pod.metadata.name)
    if store is None:
        return serving_unseen(ctx, TIKV_STORES, pod.metadata.name)
    pd, own = api_clients.pd(ctx), int(store.id)
    stores = pd.stores()
    if waiting := others_not_up(ctx, TIKV_STORES, stores, own):
        return waiting
    if not _is_marked(pod, store) and (waiting := await quorum_wait(ctx, pd, pod, own, restarts=False)):
        return waiting
    waiting = await evict(ctx, pod, store) or before_restart(ctx, "tikv", pod)
    if waiting := waiting or await flush_log_backup(ctx, pod):
        return waiting
    return others_away(ctx, TIKV_STORES, stores, own) or await quorum_wait(ctx, pd, pod, own, restarts=True)


def _is_alone(ctx: ReconcileContext) -> bool:
    """True if no other store could take leaders (F19)."""
    tikv = ctx.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(ctx.tc, "tikv") < 2


async def _spare(ctx: ReconcileContext, pod: str) -> Spared | Silence | NotDone:
    return spared(pod, "it is alone") if _is_alone(ctx) else spare_unready(ctx, TIKV_STORES, pod)


ROLLING = Rolling(
    _blocked,
    _unmet_condition,
    _prepare,
    lambda ctx: ignored_pods(ctx, TIKV_STORES),
    resume=resume,
    spare=_spare,
    asks_others=True,
)
