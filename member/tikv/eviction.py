"""Moving region leaders off a store before its pod is restarted, and letting them come back (lifecycle.md 7.4).

The time that leaders get is measured by this process, since a clock on the wall may jump (F14, F44).

Three marks tell what we owe, whatever becomes of this process. In the status of the store: how many leaders it had,
written before anything else happens, kept until they are back. On the pod: since when it is being evicted, or since
when it is not any more. In PD: the scheduler itself, which is the truth about whether leaders move (F17).
A scheduler that no mark accounts for is removed from a store that was evicted for us: its request has come late (F16).
What others evict is left to them, and an event tells of it.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from structlog.contextvars import bound_contextvars

from apis import duration, pod_commands
from apis.ordinals import desired_replicas
from apis.shared import TiKVStore
from apis.times import parse_time, stamp
from dataplane.errors import DataPlaneError
from dataplane.pd import PDClient
from kube.events import NORMAL, WARNING
from kube.objects import Object
from kube.resources import PODS
from member import api_clients, labels
from member.context import ReconcileContext
from member.lifecycle.pod_availability import is_available
from member.lifecycle.roll_events import tell_restart
from member.memory.timers import Stopwatch
from member.naming import ordinal_of
from member.observed.claims import claims_of
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Waiting, poll_interval
from member.polling import poll_on_progress
from member.stores import evictions
from member.stores.reports import restarting, store_of
from member.tikv.kind import KIND

_MIN_LEADERS = 200
"""Leaders; a store that had fewer is not waited for."""

_LISTED = "evictions listed"
_LISTED_AGAIN = 300.0
"""Seconds after which PD is asked again who evicts the stores that lead nothing."""

_NEW = timedelta(hours=1)
"""For how long a cluster that was made again may find evictions of the one before."""

_COMMANDS = (pod_commands.EVICT_LEADER, pod_commands.EVICT_LEADER_FOR_RESIZE)
"""What users, and the resizer, ask for on a pod: their schedulers are theirs (13)."""


def evict(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    """Move the leaders away, a step in each reconcile; None when none is left, or when it took too long.

    Raises DataPlaneError, ApiError, TransportError.
    """
    clock, tikv = ctx.deps.clock, ctx.tc.spec.tikv
    limit = duration.seconds((tikv and tikv.evict_leader_timeout) or "0s")
    if store.leader_count_before_upgrade is None:
        # this mark outlives the pod, so it must be stored before there is a scheduler
        store.leader_count_before_upgrade = store.leader_count
        return Waiting("EvictingLeaders", _sentence(pod, store, ""), poll_interval(0.0))
    begun = parse_time(pod.metadata.annotations.get(labels.EVICT_LEADER_BEGIN_TIME, ""))
    if begun is not None and _elapsed(ctx, pod, begun).seconds >= limit:
        # before anything is read that may not be readable (F18)
        what = f"{_sentence(pod, store, '')} after {limit:.0f} s; restarting the pod anyway"
        ctx.deps.recorder.event(ctx.owner, WARNING, "EvictLeaderTimeout", what)
        return None
    pd = api_clients.pd(ctx)
    if begun is None or int(store.id) not in pd.evicting_stores():
        begun = clock.wall().replace(microsecond=0)
        _annotate(ctx, pod, {labels.EVICT_LEADER_BEGIN_TIME: stamp(begun)})
        evictions.begin(ctx, pd, int(store.id))
        name = pod.metadata.name
        tell_restart(ctx, "tikv", name, f"evicting leaders from pod {name} (store {store.id}), then restarting it")
    elapsed = _elapsed(ctx, pod, begun)
    until, age = f", timeout at {stamp(elapsed.since + timedelta(seconds=limit))}", elapsed.seconds
    try:
        left = api_clients.tikv(ctx, pod.metadata.name).leader_count()
    except DataPlaneError as error:
        return Waiting(
            "EvictingLeaders",
            f"{_sentence(pod, store, until)}; cannot read the current count: {error}",
            poll_interval(age),
        )
    if left == 0:
        return None
    again = poll_on_progress(store.leader_count_before_upgrade, left, age)
    return Waiting("EvictingLeaders", _sentence(pod, store, until), again)


def resume(ctx: ReconcileContext, selected: str) -> Waiting | None:
    """End the evictions that we began and that are not wanted any more: of every pod that serves, but `selected`.

    A pod that is not Ready for long enough, or whose store is not Up, keeps its scheduler until it is (F15, F20).
    Raises as `evict`.
    """
    others = [(pod, store) for pod, store in _without_leaders(ctx) if pod.metadata.name != selected]
    waits = [wait for pod, store in others if _is_marked(pod, store) and (wait := _end_of(ctx, pod, store))]
    unmarked = [(pod, store) for pod, store in others if not _is_marked(pod, store)]
    _end_strays(ctx, {int(store.id): pod for pod, store in unmarked if not store.leader_count})
    return waits[0] if waits else None


def missing_leaders(store: TiKVStore) -> str:
    """What a store still lacks after an eviction, as the end of "until <pod> ..."; empty when nothing worth a wait."""
    before = store.leader_count_before_upgrade or 0
    if before < _MIN_LEADERS:
        return ""
    return f"leads its regions again ({store.leader_count} now, {before} before)"


def _without_leaders(ctx: ReconcileContext) -> Iterator[tuple[Object, TiKVStore]]:
    """The pods that were evicted, or lead nothing, though they serve, are to stay, and are not told to lead nothing."""
    tikv, wanted = ctx.status.tikv, desired_replicas(ctx.tc, "tikv")
    if not tikv.synced:
        return
    for pod in pods_of(ctx, "tikv"):
        name, annotations = pod.metadata.name, pod.metadata.annotations
        store = store_of(ctx, KIND, name)
        if store is None or not store.is_up or ordinal_of(name) >= wanted:
            continue
        if store.leader_count and not _is_marked(pod, store):
            continue
        if name in tikv.evict_leader or any(command in annotations for command in _COMMANDS):
            evictions.remember(ctx, int(store.id))
            continue
        if any(str(each.id) == store.id for each in restarting(ctx, KIND, ctx.stores, [pod])):
            continue
        if not pod.metadata.deletion_timestamp and is_available(ctx, "tikv", pod.decode_as(Pod)):
            yield pod, store


def _is_marked(pod: Object, store: TiKVStore) -> bool:
    return store.leader_count_before_upgrade is not None or labels.EVICT_LEADER_BEGIN_TIME in pod.metadata.annotations


def _end_strays(ctx: ReconcileContext, suspects: Mapping[int, Object]) -> None:
    """Remove schedulers from stores that were evicted for us, as when a request of a former leader arrives late (F16).

    `suspects` are the pods of stores that lead nothing. PD is asked only while there are some though others lead: that
    costs an idle cluster no request.
    """
    if not any(store.leader_count for store in ctx.stores):
        return
    key, stopwatches = ", ".join(map(str, sorted(suspects))), ctx.memory.stopwatches
    for other in stopwatches.known(_LISTED):
        if other != key:
            # who has led meanwhile is asked about at once
            stopwatches.forget(_LISTED, other)
    if not suspects or not stopwatches.is_due(_LISTED, key, _LISTED_AGAIN, ctx.deps.clock):
        return
    pd = api_clients.pd(ctx)
    try:
        evicting = pd.evicting_stores()
    except DataPlaneError:
        # such as of a new leader of PD, which has not loaded its schedulers yet
        stopwatches.forget(_LISTED, key)
        raise
    for store_id in sorted(evicting & suspects.keys()):
        pod = suspects[store_id]
        if store_id in ctx.memory.evicted_stores or _was_made_again(ctx, pod):
            _end_stray(ctx, pd, store_id, pod.metadata.name)
        elif store_id not in ctx.memory.evicted_by_others:
            _tell_of_others(ctx, store_id, pod.metadata.name)
    ctx.memory.evicted_by_others.intersection_update(evicting)


def _was_made_again(ctx: ReconcileContext, pod: Object) -> bool:
    """Whether the cluster is new and the data of a pod are not: what marked its evictions went with the one before."""
    made, now = parse_time(ctx.owner.metadata.creation_timestamp or ""), ctx.deps.clock.wall()
    if made is None or now - made > _NEW:
        return False
    claimed = (parse_time(claim.metadata.creation_timestamp or "") for claim in claims_of(ctx, pod))
    return any(since is not None and since < made for since in claimed)


def _end_stray(ctx: ReconcileContext, pd: PDClient, store_id: int, pod: str) -> None:
    with bound_contextvars(pod=pod, why="nothing requests it"):
        pd.end_evict_leaders(store_id)
    what = f"removed the evict-leader scheduler of store {store_id} (pod {pod}): nothing requests it"
    ctx.deps.recorder.event(ctx.owner, NORMAL, "LeaderEvictionEnded", what)


def _tell_of_others(ctx: ReconcileContext, store_id: int, pod: str) -> None:
    """Once, or the user would have to ask PD why a pod leads nothing."""
    ctx.memory.evicted_by_others.add(store_id)
    way_out = f"pd-ctl scheduler remove evict-leader-scheduler-{store_id}"
    why = "an evict-leader scheduler in PD, which the operator did not add, keeps its leaders away"
    what = f"store {store_id} (pod {pod}) leads no regions: {why}; to remove it, run {way_out}"
    ctx.deps.recorder.event(ctx.owner, NORMAL, "LeadersEvictedByOthers", what)


def _elapsed(ctx: ReconcileContext, pod: Object, begun: datetime) -> Stopwatch:
    """The time that leaders had since an eviction, or its end, was noted, as this process has seen it."""
    return ctx.memory.stopwatches.look("eviction", f"{pod.metadata.uid} {stamp(begun)}", ctx.deps.clock)


def _end_of(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    with bound_contextvars(pod=pod.metadata.name):
        return _end(ctx, pod, store)


def _end(ctx: ReconcileContext, pod: Object, store: TiKVStore) -> Waiting | None:
    """Let the leaders come back, and forget that they were away when enough of them are there."""
    annotations, now = pod.metadata.annotations, ctx.deps.clock.wall()
    ended = parse_time(annotations.get(labels.TIKV_EVICT_LEADER_END_AT, ""))
    if ended is None or labels.EVICT_LEADER_BEGIN_TIME in annotations:
        evictions.end(ctx, api_clients.pd(ctx), int(store.id))
        ended = now
    age = _elapsed(ctx, pod, ended).seconds
    if _leaders_returned(store) or age >= _return_timeout(ctx):
        _annotate(ctx, pod, {})
        store.leader_count_before_upgrade = None
        return None
    _annotate(ctx, pod, {labels.TIKV_EVICT_LEADER_END_AT: stamp(ended)})
    return Waiting(
        "LeadersComingBack", f"waiting until pod {pod.metadata.name} {missing_leaders(store)}", poll_interval(age)
    )


def _leaders_returned(store: TiKVStore) -> bool:
    before = store.leader_count_before_upgrade or 0
    return before < _MIN_LEADERS or store.leader_count >= before * 2 // 3


def _return_timeout(ctx: ReconcileContext) -> float:
    tikv = ctx.tc.spec.tikv
    return duration.seconds((tikv and tikv.wait_leader_transfer_back_timeout) or "0s")


def _annotate(ctx: ReconcileContext, pod: Object, marks: Mapping[str, str]) -> None:
    """Give a pod these marks of an eviction and no other."""
    ours = (labels.EVICT_LEADER_BEGIN_TIME, labels.TIKV_EVICT_LEADER_END_AT)
    meta = pod.metadata
    before = {key: value for key, value in meta.annotations.items() if key in ours}
    identity = {"name": meta.name, "namespace": meta.namespace}
    desired = {"apiVersion": "v1", "kind": "Pod", "metadata": identity | {"annotations": dict(marks)}}
    ctx.deps.applier.apply(PODS, desired, pod, applied={"metadata": {"annotations": before}})


def _sentence(pod: Object, store: TiKVStore, end: str) -> str:
    """What is going on. The count is the status's, which does not move with every single leader."""
    return f"evicting leaders from pod {pod.metadata.name} (store {store.id}): {store.leader_count} left{end}"
