"""Replacing TiKV stores that are lost (lifecycle.md 9.3).

recorded → one more pod is wanted at once; the lost store, its pod and its volumes stay as they are: PD restores its
data from the other replicas, and it may come back → the records go, and with them the extra pods, when the user says.
"""

from collections.abc import Mapping

from apis import predicates
from apis.shared import TiKVFailureStore, TiKVStore
from apis.tidbcluster import TiKVStatus
from dataplane.pd import DISCONNECTED, DOWN
from member import reach
from member.failover import (
    RECOVERY,
    UNHEALTHY,
    all_ready,
    claim_uids,
    clean_up,
    incident,
    limit,
    limit_reached,
    live_status,
    serving_instead,
    still_waiting,
    substitutes,
    tell,
    to_record,
    told_to_clear,
    uncounted,
)
from member.host_down import automatic, give_up_hosts, successor_has_time
from member.outcome import Done, Outcome, Waiting
from member.polling import next_look
from member.proofs import store_gone
from member.round import Round
from member.status import stamp
from member.witnesses import Failing, desired_pods, failing, is_cut_off


def failover(round_: Round) -> Outcome:
    """Replace what is lost. Raises ApiError, TransportError, DataPlaneError, OwnerGone."""
    tikv = round_.status.tikv
    if told_to_clear(round_, "tikv", bool(tikv.failure_stores)):
        _set_records(round_, {})
    if not tikv.synced:
        round_.sightings.forget("tikv")
        return Done()
    _drop_undesired(round_)
    if _may_recover(round_):
        names = ", ".join(record.pod_name for record in tikv.failure_stores.values())
        _set_records(round_, {})
        tell(round_, RECOVERY, f"all TiKV stores that the spec asks for are Up again, {names} too", is_warning=False)
    return _replace(round_)


def accused(tikv: TiKVStatus) -> dict[str, str]:
    """The stores that PD has given up, with their pods; one that is merely Disconnected may be back any moment."""
    return {store.id: store.pod_name for store in tikv.stores.values() if store.state == DOWN}


def excused(round_: Round) -> set[str]:
    """The pods that nobody counts on: lost ones that are recorded and replaced, and substitutes without a store."""
    if not round_.status.tikv.failure_stores:
        return set()
    lost = {record.pod_name for record in round_.status.tikv.failure_stores.values()}
    stores = _stores_by_pod(round_)
    # one that is just being restarted is Disconnected
    ill = {pod for pod in lost if pod not in stores or stores[pod].state not in (predicates.STORE_UP, DISCONNECTED)}
    return uncounted(round_, "tikv", ill, stores)


def _replace(round_: Round) -> Outcome:
    tikv, spec, period = round_.status.tikv, round_.tc.spec.tikv, round_.settings.failover.tikv_period
    recorded = {record.pod_name for record in tikv.failure_stores.values()}
    all_lost = failing(round_, "tikv", accused(tikv))
    lost = [each for each in all_lost if each.pod not in recorded]
    most = limit(round_, spec.max_failover_count if spec else 0)
    if not most or is_cut_off(round_):
        return Done()
    if waiting := give_up_hosts(round_, "tikv", tikv.failure_stores, all_lost) or _remove_stores(round_):
        return waiting
    new = to_record(lost, len(recorded), most, period)
    if new:
        _set_records(round_, tikv.failure_stores | {each.key: _record(round_, each) for each in new})
        names = ", ".join(each.pod for each in new)
        return Waiting("TiKVFailover", f"{names}: the store is Down; another pod is started in its place")
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(round_, "tikv", len(recorded), over[0])
    if lost:
        return still_waiting(round_, "tikv", "TiKVStoreDown", lost, period)
    return _serving_instead(round_)


def _remove_stores(round_: Round) -> Waiting | None:
    """Take the stores of machines that are down for good out of PD, so that their pods can start on new volumes.

    Only where the user has asked for that by annotation (9.3 step 3).
    """
    if not automatic(round_):
        return None
    for key, record in round_.status.tikv.failure_stores.items():
        if record.host_down and not record.store_deleted:
            return _remove(round_, key, record)
    return None


def _remove(round_: Round, key: str, record: TiKVFailureStore) -> Waiting:
    if live_status(round_).tikv.failure_stores.get(key) != record:
        return Waiting("TiKVFailover", f"waiting until the cache shows what is recorded of {record.pod_name}", 0.5)
    store = round_.status.tikv.stores.get(key)
    if store and store.state == DOWN:
        return successor_has_time(round_, "tikv", record) or _delete_store(round_, record)
    gone = store_gone(round_, int(record.store_id), "")
    if gone is None:
        what = f"waiting until store {record.store_id} of {record.pod_name} is Tombstone"
        return Waiting("TiKVFailover", what, next_look(round_, "tikv"))
    clean_up(round_, "tikv", record.pod_name, record.pvc_uid_set, gone)
    record.store_deleted = True
    return Waiting("TiKVFailover", f"{gone.what}; {record.pod_name} starts on new volumes")


def _delete_store(round_: Round, record: TiKVFailureStore) -> Waiting:
    pd = reach.pd(round_)
    live = pd.store(int(record.store_id))
    if live.state_name == DOWN and live.address.startswith(f"{record.pod_name}."):
        pd.delete_store(live.id, address=live.address)
        tell(round_, RECOVERY, f"store {live.id} of {record.pod_name} is taken out of service: its host is down")
    what = f"waiting until store {record.store_id} of {record.pod_name} is Tombstone"
    return Waiting("TiKVFailover", what, next_look(round_, "tikv"))


def _record(round_: Round, lost: Failing) -> TiKVFailureStore:
    what = f"store {lost.key} of {lost.pod} has been Down since {stamp(lost.since)}: it is replaced"
    record = TiKVFailureStore(
        pod_name=lost.pod,
        store_id=lost.key,
        pvc_uid_set=claim_uids(round_, "tikv", lost.pod),
        created_at=stamp(round_.doors.clock.wall()),
    )
    tell(round_, UNHEALTHY, what)
    return record


def _serving_instead(round_: Round) -> Outcome:
    tikv, stores = round_.status.tikv, _stores_by_pod(round_)
    if not all(pod in stores and stores[pod].state == predicates.STORE_UP for pod in substitutes(round_, "tikv")):
        return Done()
    way_back = f"when it is Up again, spec.tikv.failover.recoverByUID: {tikv.failover_uid} gives the extra pod up"
    lost = [record.pod_name for record in tikv.failure_stores.values()]
    return serving_instead(round_, "tikv", "TiKVFailedOver", lost, way_back)


def _drop_undesired(round_: Round) -> None:
    """A record of a pod that the spec does not ask for would keep an extra pod for nothing (F33)."""
    wanted, records = set(desired_pods(round_, "tikv")), round_.status.tikv.failure_stores
    _set_records(round_, {key: record for key, record in records.items() if record.pod_name in wanted})


def _may_recover(round_: Round) -> bool:
    """Whether the user wants the extra pods gone, and all others serve (6.4 step 10)."""
    tikv, spec, stores = round_.status.tikv, round_.tc.spec.tikv, _stores_by_pod(round_)
    if not tikv.failure_stores or spec is None:
        return False
    by_uid = spec.failover is not None and spec.failover.recover_by_uid == tikv.failover_uid != ""
    if not spec.recover_failover and not by_uid:
        return False
    up = (pod in stores and stores[pod].state == predicates.STORE_UP for pod in desired_pods(round_, "tikv"))
    return all(up) and all_ready(round_, "tikv")


def _set_records(round_: Round, records: dict[str, TiKVFailureStore]) -> None:
    """All records belong to one incident, which ends with the last of them."""
    tikv = round_.status.tikv
    tikv.failure_stores = records
    if not records:
        tikv.failover_uid = ""
    elif not tikv.failover_uid:
        tikv.failover_uid = incident(round_, min(records))


def _stores_by_pod(round_: Round) -> Mapping[str, TiKVStore]:
    """The store of each pod; of several, the newest."""
    stores = sorted(round_.status.tikv.stores.values(), key=lambda store: int(store.id))
    return {store.pod_name: store for store in stores}
