"""TiKV: starts when PD has a quorum (lifecycle.md 6.5)."""

from apis import predicates
from apis.tidbcluster import TidbCluster
from member import sync
from member.labels import TIKV_VOLUMES_READY
from member.outcome import Done, Outcome, Waiting
from member.polling import next_look
from member.proofs import no_store
from member.round import Round
from member.scale_out import ScaleOut
from member.scaling import Scaling
from member.tikv import desired, failover, scale_in, upgrade
from member.tikv.status import observe

__all__ = ["act", "observe"]


def act(round_: Round) -> Outcome:
    """Bring TiKV a step closer to its spec."""
    return sync.act(round_, _TIKV)


def _gate(round_: Round) -> Waiting | None:
    if not predicates.pd_is_available(round_.tc):
        return Waiting("WaitingForPD", "PD has no quorum of healthy, Ready members yet")
    if round_.tc.spec.recovery_mode and TIKV_VOLUMES_READY not in round_.tc.metadata.annotations:
        return Waiting("WaitingForVolumes", f"recovery mode: the restore has not set {TIKV_VOLUMES_READY} yet")
    return None


def _serving(round_: Round) -> Outcome:
    stores = round_.status.tikv.stores
    if predicates.tikv_all_stores_ready(round_.tc):
        return Done(f"{len(stores)} of {len(stores)} stores are Up")
    again = next_look(round_, "tikv")
    if not round_.status.tikv.boot_strapped:
        return Waiting("NotBootstrapped", "no TiKV has registered with PD yet", again)
    others = ", ".join(f"{s.pod_name} is {s.state}" for s in stores.values() if s.state != predicates.STORE_UP)
    up = sum(store.state == predicates.STORE_UP for store in stores.values())
    return Waiting("StoresNotUp", f"{up} stores are Up{'; ' + others if others else ''}", again)


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tikv.scale_policy if tc.spec.tikv else None
    return (policy.scale_out_parallelism if policy else None) or 1


def _stores_known(round_: Round) -> Waiting | None:
    """Whether a pod has a store is judged by what PD says now (F7)."""
    if round_.status.tikv.synced:
        return None
    return Waiting("StoresUnknown", "TiKV grows when PD tells its stores", next_look(round_, "tikv"))


def _is_member(round_: Round, pod: str) -> bool:
    return any(store.pod_name == pod for store in round_.status.tikv.stores.values())


_OUT = ScaleOut(
    limit=_limit,
    allowed=_stores_known,
    is_member=_is_member,
    unused=lambda round_, pod: no_store(round_, "tikv", pod),
)

_TIKV = sync.Member(
    name="tikv",
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scale_in.SCALE_IN),
    rolling=upgrade.ROLLING,
    failover=failover.failover,
)
