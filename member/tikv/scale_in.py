"""How TiKV gives up a pod: its leaders move away, then its data, then it (lifecycle.md 8.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from apis import predicates
from apis.tidbcluster import TidbCluster
from dataplane.errors import Conflict, NotBootstrapped
from dataplane.pd import DOWN, OFFLINE, UP, PDClient, Store
from member import reach
from member.departure import Departure
from member.naming import address_book
from member.outcome import Refused, Waiting
from member.pods import Pod
from member.polling import next_look
from member.proofs import Proof, no_store, spec_confirmed, store_gone
from member.round import Round
from member.scale_in import ScaleIn
from member.tikv.stores import own_stores

_EVICTION = 300.0
"""Seconds for which leaders may take their time to move away before the store is taken offline all the same (F35)."""

_REGISTRATION = 150.0
"""Seconds in which a pod that runs should have registered its store: five resyncs."""


_ASK_AGAIN = 30.0
"""Seconds until PD is asked again for what it refused by rule."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do but wait, for what."""

    what: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Without this store there would be too few; why."""

    why: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Let its leaders move away first."""


@dataclass(frozen=True, slots=True)
class TakeOffline:
    """Let PD move its data away."""


Step: TypeAlias = Wait | Refuse | Evict | TakeOffline


def next_step(store: Store, pod: str, others_up: int, max_replicas: int, waited: float) -> Step:
    """The next step to remove a store (I5, F35).

    `others_up`: the Up stores that remain without it, and without those that leave before it. `waited`: seconds since
    it was first asked to leave.
    """
    if store.state_name == OFFLINE:
        return Wait(f"store {store.id} of {pod} is Offline: {store.region_count} regions left to move")
    if others_up < max_replicas:
        return Refuse(
            f"store {store.id} of {pod} can't leave: {others_up} TiKV stores would be Up, and PD keeps {max_replicas} "
            "replicas of each region; raise spec.tikv.replicas again, or lower max-replicas in PD"
        )
    if store.leader_count and store.state_name != DOWN and waited < _EVICTION:
        return Evict()
    return TakeOffline()


def _leave(leaving: Departure) -> Proof | Waiting | Refused:
    round_ = leaving.round_
    if not predicates.is_synced(round_.tc, "tikv"):
        return _unknown(round_)
    pd = reach.pd(round_)
    stores = _stores(pd)
    own = own_stores(round_, stores, leaving.ordinal)
    if len(own) > 1 or any(not store.complete for store in own):
        ids = ", ".join(str(store.id) for store in own)
        return Waiting("StoresUnknown", f"PD tells no single store of {leaving.name} but {ids}", _soon(round_))
    return _give_up(leaving, pd, own[0], stores) if own else _without_store(leaving, pd)


def _give_up(leaving: Departure, pd: PDClient, store: Store, stores: Sequence[Store]) -> Waiting | Refused:
    round_, name = leaving.round_, leaving.name
    others_up = _others_up(round_, stores, store, leaving.ordinal)
    step = next_step(store, name, others_up, pd.config().max_replicas, _waited(leaving))
    match step:
        case Wait(what):
            return Waiting("ScalingIn", what, _soon(round_))
        case Refuse(why):
            if leaving.begun:
                _keep(leaving, pd, store)
            return Refused("FailedScaleIn", why)
        case Evict():
            leaving.note(store.id)
            if store.id not in pd.evicting_stores():
                pd.begin_evict_leaders(store.id)
            what = f"store {store.id} of {name} has {store.leader_count} region leaders left to move away"
            return Waiting("ScalingIn", what, _soon(round_))
        case TakeOffline():
            return _take_offline(leaving, pd, store)


def _take_offline(leaving: Departure, pd: PDClient, store: Store) -> Waiting | Refused:
    round_ = leaving.round_
    if not spec_confirmed(round_):
        return Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", _soon(round_))
    leaving.note(store.id)
    try:
        pd.delete_store(store.id, address=store.address)
    except Conflict as error:
        return Refused("FailedScaleIn", f"PD keeps store {store.id} of {leaving.name}: {error}", _ASK_AGAIN)
    what = f"store {store.id} of {leaving.name} goes Offline: {store.region_count} regions left to move"
    return Waiting("ScalingIn", what, _soon(round_))


def _without_store(leaving: Departure, pd: PDClient) -> Proof | Waiting:
    """What is left to do for a pod whose store is Tombstone, or that never had one."""
    round_, known = leaving.round_, leaving.store_id
    if known is None:
        return _unregistered(leaving)
    gone = store_gone(round_, known, "") and no_store(round_, "tikv", leaving.name)
    if gone is None:
        return _unknown(round_)
    if known in pd.evicting_stores():
        pd.end_evict_leaders(known)
    return gone


def _unregistered(leaving: Departure) -> Proof | Waiting:
    """A pod that does not run registers no store; one that does gets some time for it (F12)."""
    round_ = leaving.round_
    pod = leaving.pod.decode_as(Pod) if leaving.pod else None
    if pod is not None and pod.status.phase == "Running":
        leaving.note()
        since = leaving.since or round_.doors.clock.wall()
        if leaving.pod and not pod.is_ready and leaving.pod.metadata.creation_timestamp:
            since = min(since, datetime.fromisoformat(leaving.pod.metadata.creation_timestamp))
        left = _REGISTRATION - _age(round_, since)
        if left > 0:
            what = f"{leaving.name} runs but has no store; it goes unless one registers within {left:.0f} s"
            return Waiting("ScalingIn", what, min(_soon(round_), left))
    return no_store(round_, "tikv", leaving.name) or _unknown(round_)


def _stay(staying: Departure) -> Proof | Waiting | None:
    """Keep a store that was about to leave, unless it is Tombstone: then its data can't serve again (F36)."""
    round_ = staying.round_
    if not predicates.is_synced(round_.tc, "tikv"):
        return _unknown(round_)
    pd = reach.pd(round_)
    own = own_stores(round_, _stores(pd), staying.ordinal)
    if not own:
        return no_store(round_, "tikv", staying.name) or _unknown(round_)
    for store in own:
        _keep(staying, pd, store)
    return None


def _keep(staying: Departure, pd: PDClient, store: Store) -> None:
    if store.state_name == OFFLINE:
        pd.restore_store(store.id, address=store.address)
    pd.end_evict_leaders(store.id)
    staying.clear()


def _stores(pd: PDClient) -> tuple[Store, ...]:
    try:
        return pd.stores()
    except NotBootstrapped:
        return ()


def _others_up(round_: Round, stores: Sequence[Store], store: Store, ordinal: int) -> int:
    """The TiKV stores, those of peers included, that are Up and stay when this one and those above it have left."""
    book = address_book(round_.tc)
    up = [each for each in stores if each.state_name == UP and not each.is_tiflash and each.id != store.id]
    ordinals = [book.ordinal_of("tikv", each.address) for each in up]
    return sum(each is None or each < ordinal for each in ordinals)


def _waited(leaving: Departure) -> float:
    return _age(leaving.round_, leaving.since) if leaving.since else 0.0


def _age(round_: Round, since: datetime) -> float:
    return (round_.doors.clock.wall() - since).total_seconds()


def _soon(round_: Round) -> float:
    return next_look(round_, "tikv")


def _unknown(round_: Round) -> Waiting:
    return Waiting("StoresUnknown", "TiKV is scaled in when PD tells its stores", _soon(round_))


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tikv.scale_policy if tc.spec.tikv else None
    return (policy.scale_in_parallelism if policy else None) or 1


SCALE_IN = ScaleIn(_limit, _leave, _stay)
