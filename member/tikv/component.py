"""TiKV: starts when PD has a quorum (lifecycle.md 6.5)."""

from apis import predicates
from apis.pod_commands import EVICT_LEADER, EVICT_LEADER_FOR_RESIZE, REPLACE_VOLUME, REPLACEMENT_BEGUN
from member.context import ReconcileContext
from member.evidence import no_store
from member.labels import TIKV_VOLUMES_READY
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.scaling import Scaling
from member.lifecycle.stateless import scale_out_parallelism
from member.lifecycle.workload import Workload
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.tikv import desired, evict_leader, failover, replace_volume, scale_in, upgrade
from member.tikv.status import observe


def _gate(ctx: ReconcileContext) -> Waiting | None:
    if ctx.tc.spec.recovery_mode and TIKV_VOLUMES_READY not in ctx.tc.metadata.annotations:
        return Waiting(
            "WaitingForVolumes", f"recovery mode: waiting for the restore to set the annotation {TIKV_VOLUMES_READY}"
        )
    return None


def _serving(ctx: ReconcileContext) -> Outcome:
    stores = ctx.status.tikv.stores
    if predicates.all_members_ready(ctx.tc, "tikv"):
        return Done(f"{len(stores)} of {len(stores)} stores are Up")
    again = next_poll(ctx, "tikv")
    if not ctx.status.tikv.boot_strapped:
        return Waiting("NotBootstrapped", "no TiKV store has registered with PD yet", again)
    others = ", ".join(f"{s.pod_name} is {s.state}" for s in stores.values() if not s.is_up)
    up = sum(store.is_up for store in stores.values())
    return Waiting("StoresNotUp", f"{up} stores are Up{'; ' + others if others else ''}", again)


def _stores_known(ctx: ReconcileContext) -> Waiting | None:
    """Whether a pod has a store is judged by what PD says now (F7)."""
    if ctx.status.tikv.synced:
        return None
    return Waiting(
        "StoresUnknown", "waiting for PD to report the TiKV stores before scaling out", next_poll(ctx, "tikv")
    )


def _is_member(ctx: ReconcileContext, pod: str) -> bool:
    return any(store.pod_name == pod for store in ctx.status.tikv.stores.values())


_OUT = ScaleOut(
    limit=scale_out_parallelism,
    allowed=_stores_known,
    is_member=_is_member,
    volumes_unused=lambda ctx, pod: no_store(ctx, "tikv", pod),
)

TIKV = Workload(
    name="tikv",
    observe=observe,
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scale_in.SCALE_IN),
    rolling=upgrade.ROLLING,
    failover=failover.failover,
    commands={
        REPLACE_VOLUME: replace_volume.act,
        REPLACEMENT_BEGUN: replace_volume.act,
        EVICT_LEADER: evict_leader.act,
        EVICT_LEADER_FOR_RESIZE: evict_leader.act,
    },
)
