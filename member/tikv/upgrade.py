"""How TiKV's pods are restarted: region leaders move away first (lifecycle.md 7.4)."""

from collections.abc import Sequence

from apis import predicates
from dataplane.pd import Store
from kube.objects import Object
from member import labels, reach
from member.naming import ordinal_of
from member.outcome import Waiting
from member.polling import next_look
from member.rolling import Hold, Rolling, next_look_at_walk
from member.round import Round
from member.tikv.eviction import coming_back, evict, resume, store_of
from member.tikv.failover import excused
from member.tikv.stores import is_up, not_up, own_stores


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
    return _others_not_up(round_, reach.pd(round_).stores(), int(store.id)) or evict(round_, pod, store)


def _relieve(round_: Round, pod: str) -> Waiting | None:
    """A pod that is not Ready may serve all the same: it does not go while another store is away (F13)."""
    if not round_.status.tikv.synced or _is_alone(round_):
        return None
    stores = reach.pd(round_).stores()
    up = next(filter(is_up, own_stores(round_, stores, ordinal_of(pod))), None)
    return _others_not_up(round_, stores, up.id) if up else None


def _is_alone(round_: Round) -> bool:
    """Whether there is no other store that could take leaders (F19)."""
    tikv = round_.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(round_.tc, "tikv") < 2


def _others_not_up(round_: Round, stores: Sequence[Store], store_id: int) -> Waiting | None:
    if round_.tc.metadata.annotations.get(labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE) == "false":
        return None
    ill = not_up(round_, stores, store_id)
    if not ill:
        return None
    way_out = f'annotation {labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE}: "false" skips this'
    what = f"TiKV's pods are restarted when all stores are Up: {ill}; {way_out}"
    return Waiting("StoresNotUp", what, next_look_at_walk(round_, "tikv"))


ROLLING = Rolling(_blocked, _settling, _prepare, excused, resume=resume, relieve=_relieve)
