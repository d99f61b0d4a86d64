"""TiKV: starts when PD has a quorum (lifecycle.md 6.5)."""

from apis import predicates
from apis.tidbcluster import TidbCluster
from member.context import ReconcileContext
from member.evidence import no_store
from member.labels import TIKV_VOLUMES_READY
from member.lifecycle import component_sync
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.scaling import Scaling
from member.outcome import Done, Outcome, Waiting
from member.polling import next_look
from member.tikv import desired, failover, scale_in, upgrade
from member.tikv.status import observe

__all__ = ["act", "observe"]


def act(ctx: ReconcileContext) -> Outcome:
    """Bring TiKV a step closer to its spec."""
    return component_sync.act(ctx, _TIKV)


def _gate(ctx: ReconcileContext) -> Waiting | None:
    if not predicates.pd_is_available(ctx.tc):
        return Waiting("WaitingForPD", "PD has no quorum of healthy, Ready members yet")
    if ctx.tc.spec.recovery_mode and TIKV_VOLUMES_READY not in ctx.tc.metadata.annotations:
        return Waiting("WaitingForVolumes", f"recovery mode: the restore has not set {TIKV_VOLUMES_READY} yet")
    return None


def _serving(ctx: ReconcileContext) -> Outcome:
    stores = ctx.status.tikv.stores
    if predicates.tikv_all_stores_ready(ctx.tc):
        return Done(f"{len(stores)} of {len(stores)} stores are Up")
    again = next_look(ctx, "tikv")
    if not ctx.status.tikv.boot_strapped:
        return Waiting("NotBootstrapped", "no TiKV has registered with PD yet", again)
    others = ", ".join(f"{s.pod_name} is {s.state}" for s in stores.values() if s.state != predicates.STORE_UP)
    up = sum(store.state == predicates.STORE_UP for store in stores.values())
    return Waiting("StoresNotUp", f"{up} stores are Up{'; ' + others if others else ''}", again)


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tikv.scale_policy if tc.spec.tikv else None
    return (policy.scale_out_parallelism if policy else None) or 1


def _stores_known(ctx: ReconcileContext) -> Waiting | None:
    """Whether a pod has a store is judged by what PD says now (F7)."""
    if ctx.status.tikv.synced:
        return None
    return Waiting("StoresUnknown", "TiKV grows when PD tells its stores", next_look(ctx, "tikv"))


def _is_member(ctx: ReconcileContext, pod: str) -> bool:
    return any(store.pod_name == pod for store in ctx.status.tikv.stores.values())


_OUT = ScaleOut(
    limit=_limit,
    allowed=_stores_known,
    is_member=_is_member,
    unused=lambda ctx, pod: no_store(ctx, "tikv", pod),
)

_TIKV = component_sync.Member(
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
