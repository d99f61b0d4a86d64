"""How TiKV's pods are restarted: region leaders move away first (lifecycle.md 7.4)."""

from apis import predicates
from kube.objects import Object
from member import labels, reach
from member.outcome import Waiting
from member.polling import next_look
from member.rolling import Hold, Rolling, next_look_at_walk
from member.round import Round
from member.tikv.eviction import coming_back, evict, resume, store_of
from member.tikv.failover import excused


def _blocked(round_: Round) -> Waiting | None:
    if predicates.in_phase(round_.tc, "pd", "Upgrade", "Scale"):
        return Waiting("WaitingForPD", "PD is upgraded or scaled before TiKV's pods are restarted")
    if round_.status.tikv.synced or _is_alone(round_):
        return None
    return Waiting("StoresUnknown", "TiKV's pods are restarted when PD tells its stores", next_look(round_, "tikv"))


def _settling(round_: Round, pod: str) -> str:
    store = store_of(round_, pod)
    if store is None or store.state != predicates.STORE_UP:
        return "has a store that is Up"
    return coming_back(store)


def _prepare(round_: Round, pod: Object) -> Hold | None:
    store = store_of(round_, pod.metadata.name)
    if store is None or _is_alone(round_):
        return None
    return _others_not_up(round_, store.id) or evict(round_, pod, store)


def _is_alone(round_: Round) -> bool:
    """Whether there is no other store that could take leaders (F19)."""
    tikv = round_.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(round_.tc, "tikv") < 2


def _others_not_up(round_: Round, store_id: str) -> Waiting | None:
    """The stores, TiFlash's and peers' too, that PD does not call Up right now (F13); not those given up already."""
    if round_.tc.metadata.annotations.get(labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE) == "false":
        return None
    given_up = {record.store_id for record in round_.status.tikv.failure_stores.values()}
    ill = [
        f"store {store.id} ({store.address}) is {store.state_name if store.complete else 'unknown'}"
        for store in reach.pd(round_).stores()
        if str(store.id) not in given_up
        and str(store.id) != store_id
        and not (store.complete and store.state_name == predicates.STORE_UP)
    ]
    if not ill:
        return None
    way_out = f'annotation {labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE}: "false" skips this'
    what = f"TiKV's pods are restarted when all stores are Up: {', '.join(ill)}; {way_out}"
    return Waiting("StoresNotUp", what, next_look_at_walk(round_, "tikv"))


ROLLING = Rolling(_blocked, _settling, _prepare, excused, resume=resume)
