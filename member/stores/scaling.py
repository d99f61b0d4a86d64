"""The scale-in of a store: its leaders move away, then its data, then its pod goes (lifecycle.md 8.5, 8.6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from apis import predicates
from apis.accessor import component as component_of
from apis.ordinals import OrdinalSet
from apis.times import stamp
from dataplane.errors import Conflict, DataPlaneError, NotBootstrapped, SchedulersUnknown, Unavailable
from dataplane.pd import DISCONNECTED, DOWN, OFFLINE, TOMBSTONE, UP, LiveStore, PDReads, Store
from member import api_clients
from member.actions import KeepStore, RemoveStore
from member.context import ReconcileContext
from member.evidence import Evidence, no_store, not_serving, pods_live, spec_or_wait, store_gone
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scaling import ScaleIn
from member.lifecycle.stateless import scale_in_parallelism
from member.naming import address_book
from member.observed.pod import Pod
from member.outcome import Refused, Wait, Waiting, poll_interval
from member.polling import next_poll
from member.stores import evictions
from member.stores.kind import Needs, StoreKind, shortage
from member.stores.reports import own_stores, restarting, without_store
from ports.side_by_side import both
from ports.transport import ConnectionRefused

_EVICTION = 300.0
"""Seconds that leaders have to move away; after that the store is taken offline anyway (F35)."""

_REGISTRATION = 30.0
"""Seconds in which a running pod should register its store while PD answers: it tries several times a second.

Time during which PD did not answer does not count.
"""


_ASK_AGAIN = 30.0
"""Seconds until the next check of something that PD does not allow: users change its rules with pd-ctl and SQL."""

_IN_DOUBT = "scale-in in doubt"
_DOUBT = 30.0
"""Seconds for which PD's answers must forbid a removal before its preparations are reverted.

If its members contradict each other, each answer would revert what the one before began.
"""

_FIRST_LOOK = 2.0
"""Seconds until the first check: a store with few regions has moved them by then, however long other stores took."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Without the leaving stores there would be too few; `why` is the message."""

    why: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Move its leaders away first."""


@dataclass(frozen=True, slots=True)
class TakeOffline:
    """Have PD move its data away."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep this store for now, because it serves in place of another one; `why` is the message."""

    why: str


@dataclass(frozen=True, slots=True)
class Others:
    """The stores of a kind that stay: the number that is Up, and the ids from which PD's leader has not heard lately.

    `shortage` says why the data of the leaving stores does not fit on them; empty if it may fit.
    """

    up: int
    silent: Sequence[int] = ()
    shortage: str = ""


Step: TypeAlias = Wait | Refuse | Keep | Evict | TakeOffline


def next_step(
    kind: StoreKind, store: Store, pod: str, others: Others, needs: Needs, *, leaders_gone: bool, wanted: int = 0
) -> Step:
    """The next step in the removal of a store (I5, F35, O12).

    `others` are the stores that remain after all leaving stores have left. `wanted` is the number in the spec, and
    `needs` the number that PD requires. `leaders_gone` is True if the store leads no regions, or if their time to move
    is over.
    """
    replicas = needs.stores
    too_few = (
        f"only {others.up} {kind.title} stores would be Up, but {needs.kept}; raise spec.{kind.name}.replicas again, "
        f"or {needs.way_out}"
    )
    no_room = (
        f"{others.shortage}; raise spec.{kind.name}.replicas again, or give the stores that stay larger volumes"
        if others.shortage
        else ""
    )
    if store.state_name == OFFLINE:
        stays = f"; {too_few}" if store.region_count and others.up < replicas else no_room and f"; {no_room}"
        return Wait(f"store {store.id} of pod {pod} is Offline: {store.region_count} regions left to move{stays}")
    if others.up < max(replicas, wanted) <= others.up + len(others.silent):
        # after a change of PD's leader all stores are Disconnected until their next heartbeat
        silent = ", ".join(f"store {each}" for each in others.silent)
        return Wait(f"waiting until {silent} has reported to PD before removing store {store.id} of pod {pod}")
    if others.up < replicas:
        return Refuse(f"spec.{kind.name}.replicas: {wanted}: {too_few}")
    if no_room and store.state_name != DOWN:
        # PD restores the data of a Down store whether or not the store is removed
        return Refuse(f"spec.{kind.name}.replicas: {wanted}: {no_room}")
    if others.up < wanted and store.state_name != DOWN:
        return Keep(
            f"only {others.up} of {wanted} {kind.title} stores would be Up without pod {pod}; waiting for the others "
            f"before removing its store {store.id}"
        )
    return TakeOffline() if leaders_gone or store.state_name == DOWN else Evict()


async def _drain(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting | Refused:
    try:
        return await _drained(kind, removal)
    except SchedulersUnknown as error:
        # a new leader of PD loads them within seconds, and no event reports it
        what = f"cannot remove the store of pod {removal.name}: {error}"
        return Waiting("SchedulersUnknown", what, _soon(removal.ctx, kind))


async def _drained(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx = removal.ctx
    if not predicates.is_synced(ctx.tc, kind.name):
        return _unknown(ctx, kind)
    stores = _stores(api_clients.pd_answers(ctx))
    own = own_stores(ctx, kind, stores, removal.ordinal)
    if len(own) > 1 or any(not store.complete for store in own):
        ids = ", ".join(str(store.id) for store in own)
        return Waiting(
            "StoresUnknown", f"PD does not report exactly one store for pod {removal.name}: {ids}", _soon(ctx, kind)
        )
    return await _drain_store(kind, removal, own[0], stores) if own else await _without_store(kind, removal)


async def _drain_store(
    kind: StoreKind, removal: PodRemoval, store: LiveStore, stores: Sequence[Store]
) -> Waiting | Refused:
    ctx, name, answers = removal.ctx, removal.name, api_clients.pd_answers(removal.ctx)
    leaders = _leaders(ctx, kind, name, store)
    evicting = answers.evicting_stores()
    is_evicted = leaders != 0 and evictions.has_begun(ctx, store.id, evicting)
    leaders_gone = leaders == 0 or _waited(removal, is_evicted) >= _EVICTION
    wanted, needs = component_of(ctx.tc, kind.name).workload.replicas, kind.needs(answers)
    placement = kind.placement(answers) if needs.stores else None

    def step(store: Store, stores: Sequence[Store]) -> Step:
        stay, leave = _divided(ctx, kind, stores, store, removal.staying)
        lacking = shortage(leave, stay, placement) if placement else ""
        others = Others(
            sum(each.state_name == UP for each in stay),
            [each.id for each in stay if each.state_name == DISCONNECTED],
            lacking,
        )
        return next_step(kind, store, name, others, needs, leaders_gone=leaders_gone, wanted=wanted)

    match step(store, stores):
        case Wait(what):
            if store.state_name == OFFLINE and not removal.begun:
                # v1.6 records it only for TiKV, and on pods that may have been recreated since
                await removal.note(store.id)
            return Waiting("ScalingIn", what, _soon(ctx, kind))
        case Keep(why):
            await _take_back_in_time(kind, removal, store.id)
            return Waiting("ScalingIn", why, _soon(ctx, kind))
        case Refuse(why):
            await _take_back_in_time(kind, removal, store.id)
            return Refused("FailedScaleIn", why, _ASK_AGAIN)
        case Evict():
            _forget_doubt(removal)
            if not is_evicted and isinstance(unconfirmed := spec_or_wait(ctx, _soon(ctx, kind)), Waiting):
                return unconfirmed
            await removal.note(store.id)
            doubt = evictions.doubt(ctx, store.id, evicting)
            if not is_evicted:
                await evictions.begin(ctx, api_clients.pd(ctx), store.id)
            left = "an unknown number" if leaders is None else leaders
            what = f"evicting leaders from pod {name} (store {store.id}): {left} left{doubt}"
            return Waiting("ScalingIn", what, _soon(ctx, kind) if is_evicted else poll_interval(0.0))
        case TakeOffline():
            _forget_doubt(removal)
            return _others_restarting(kind, removal, stores, store) or await _take_offline(kind, removal, store, step)


def _others_restarting(kind: StoreKind, removal: PodRemoval, stores: Sequence[Store], store: Store) -> Waiting | None:
    """The wait for stores that count as Up only because PD has not noticed their restart yet (F13)."""
    ctx = removal.ctx
    pods = pods_live(ctx, kind.name).pods
    away = ", ".join(f"store {each.id}" for each in restarting(ctx, kind, stores, pods) if each.id != store.id)
    if not away:
        return None
    what = f"waiting until {away} has reported to PD since its restart before removing store {store.id}"
    return Waiting("ScalingIn", f"{what} of pod {removal.name}", _soon(ctx, kind))


async def _take_offline(
    kind: StoreKind, removal: PodRemoval, store: LiveStore, step: Callable[[Store, Sequence[Store]], Step]
) -> Waiting | Refused:
    """Remove a store from PD, if `step` still says so for the stores that PD lists at that moment."""
    ctx = removal.ctx
    wanted = spec_or_wait(ctx, _soon(ctx, kind))
    if isinstance(wanted, Waiting):
        return wanted
    if not await removal.note(store.id):
        # once PD has no store of the pod, only its labels show which one it was
        what = f"the labels of pod {removal.name} or its volumes do not keep that store {store.id} is its store"
        return Waiting("ScalingIn", f"{what}; removing the store waits", _soon(ctx, kind))

    def may_go(listed: Sequence[Store]) -> bool:
        now = next((each for each in listed if each.id == store.id), None)
        return now is None or isinstance(step(now, listed), TakeOffline)

    try:
        is_going = await RemoveStore(api_clients.pd(ctx), store, wanted, may_go)
    except Conflict as error:
        return Refused(
            "FailedScaleIn", f"PD refused to remove store {store.id} of pod {removal.name}: {error}", _ASK_AGAIN
        )
    if not is_going:
        what = f"PD's list of stores changed before store {store.id} of pod {removal.name} was removed; checking again"
        return Waiting("ScalingIn", what, poll_interval(0.0))
    what = f"removing store {store.id} of pod {removal.name}: {store.region_count} regions left to move"
    return Waiting("ScalingIn", what, min(_soon(ctx, kind), _FIRST_LOOK))


async def _without_store(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting:
    """The remaining steps for a pod whose store is Tombstone, or that never had a store."""
    ctx, known = removal.ctx, removal.store_id
    if known is None:
        return await _unregistered(kind, removal)
    gone = _gone(kind, removal)
    # one answer may be wrong: without the evidence, the eviction would end and begin again with each
    if isinstance(gone, Evidence) and kind.leaders and known in api_clients.pd_answers(ctx).evicting_stores():
        await evictions.end(ctx, api_clients.pd(ctx), known, confirm=not _is_tombstone(ctx, known))
    return gone


def _gone(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting:
    """Evidence that the store of a pod is gone: it is Tombstone, or PD lists none and the pod does not serve (I1, I3).

    An outdated list of PD does not show a new store. Only a pod whose store is known by id to be Tombstone may still
    answer.
    """
    ctx, known, pod = removal.ctx, removal.store_id, removal.name
    if known is None:
        if not_serving(ctx, kind.name, pod, partial(kind.ask, ctx, pod)) is None:
            what = f"PD reports no store for pod {pod}, which may be serving; waiting for PD to report the store"
            return Waiting("StoresUnknown", what, _soon(ctx, kind))
        return no_store(ctx, kind.name, pod) or _unknown(ctx, kind)
    is_gone, is_unlisted = both(
        ctx.deps.dataplane.side_by_side, partial(store_gone, ctx, known, ""), partial(no_store, ctx, kind.name, pod)
    )
    return (is_gone and is_unlisted) or _unknown(ctx, kind)


def _is_tombstone(ctx: ReconcileContext, store_id: int) -> bool:
    stores = api_clients.pd_answers(ctx).all_stores()
    return any(store.id == store_id and store.state_name == TOMBSTONE for store in stores)


async def _unregistered(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting:
    """The wait for a running pod to register a store (F12). A pod that has not started registers none."""
    ctx = removal.ctx
    if removal.pod is not None and removal.pod.decode_as(Pod).has_started(kind.name):
        await removal.note()
        left = _REGISTRATION - without_store(ctx, removal.pod)
        if left > 0:
            what = (
                f"pod {removal.name} is running but has no store; removing it unless one registers within {left:.0f} s"
            )
            return Waiting("ScalingIn", what, min(_soon(ctx, kind), left))
    return _gone(kind, removal)


async def _cancel(kind: StoreKind, removal: PodRemoval) -> Evidence | Waiting | None:
    """Keep a store that was about to leave, unless it is Tombstone: then its data cannot serve again (F36)."""
    ctx = removal.ctx
    if not predicates.is_synced(ctx.tc, kind.name):
        return _unknown(ctx, kind)
    pd = api_clients.pd(ctx)
    # read each store live: a list may predate the removal, and nothing checks the store after its marks are cleared
    own = [pd.store(each.id) for each in own_stores(ctx, kind, _stores(pd), removal.ordinal)]
    stores = [store for store in own if store.state_name != TOMBSTONE]
    if not stores:
        return _gone(kind, removal)
    for store in stores:
        if store.state_name == OFFLINE:
            try:
                await KeepStore(pd, store)
            except Conflict as error:
                what = f"PD refused to keep store {store.id} of pod {removal.name}: {error}"
                return Waiting("ScalingIn", what, _ASK_AGAIN)
        await _take_back(kind, removal, store.id)
    return None


async def _take_back_in_time(kind: StoreKind, removal: PodRemoval, store_id: int) -> None:
    """Revert the preparations for a removal that must wait, once all answers since `_DOUBT` seconds have said so."""
    ctx = removal.ctx
    if ctx.memory.stopwatches.look(_IN_DOUBT, removal.name, ctx.deps.clock).seconds >= _DOUBT:
        await _take_back(kind, removal, store_id)


def _forget_doubt(removal: PodRemoval) -> None:
    """Record that an answer of PD lets a store leave."""
    removal.ctx.memory.stopwatches.forget(_IN_DOUBT, removal.name)


async def _take_back(kind: StoreKind, removal: PodRemoval, store_id: int) -> None:
    """Revert the preparations for the removal of a store, if there were any."""
    if not removal.begun:
        return
    if kind.leaders:
        await evictions.end(removal.ctx, api_clients.pd(removal.ctx), store_id)
    await removal.clear()


def _stores(pd: PDReads) -> tuple[LiveStore, ...]:
    try:
        return pd.stores()
    except NotBootstrapped:
        return ()


def _leaders(ctx: ReconcileContext, kind: StoreKind, pod: str, store: Store) -> int | None:
    """The number of regions that a store leads; None if unknown.

    The store itself is asked: a new leader of PD does not know all leaders yet. A store that does not run leads none.
    """
    if kind.leaders is None:
        return 0
    try:
        return kind.leaders(ctx, pod)
    except DataPlaneError as error:
        not_running = isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused)
        return store.leader_count or (0 if not_running else None)


def _divided(
    ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], store: Store, staying: OrdinalSet
) -> tuple[Sequence[Store], Sequence[Store]]:
    """The stores of the kind that stay (peers' stores included), and those that leave (`store` included)."""
    book = address_book(ctx.tc)
    stay, leave = list[Store](), list[Store]()
    for each in filter(kind.has, stores):
        owner = book.ordinal_of(kind.name, each.address)
        stays = each.id != store.id and (owner is None or owner in staying)
        (stay if stays else leave).append(each)
    return stay, leave


def _waited(removal: PodRemoval, is_evicted: bool) -> float:
    """Seconds that leaders have had to move away, measured by this process: the wall clock may jump (F35, F44).

    Time in which PD does not move leaders, e.g. because it refuses to, does not count.
    """
    if not removal.since:
        return 0.0
    stopwatches, key = removal.ctx.memory.stopwatches, f"{removal.name} since {stamp(removal.since)}"
    if not is_evicted:
        stopwatches.forget("scale-in", key)
        return 0.0
    seconds: float = stopwatches.look("scale-in", key, removal.ctx.deps.clock).seconds
    return seconds


def _soon(ctx: ReconcileContext, kind: StoreKind) -> float:
    return next_poll(ctx, kind.name)


def _unknown(ctx: ReconcileContext, kind: StoreKind) -> Waiting:
    what = f"waiting for PD to report the {kind.title} stores before scaling in"
    return Waiting("StoresUnknown", what, _soon(ctx, kind))


def scale_in(kind: StoreKind) -> ScaleIn:
    """The scale-in procedure of a kind of stores."""
    return ScaleIn(scale_in_parallelism, partial(_drain, kind), partial(_cancel, kind))
