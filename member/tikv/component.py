"""TiKV: starts when PD has a quorum (lifecycle.md 6.5)."""

from functools import partial

from apis import predicates
from apis.pod_commands import EVICT_LEADER, EVICT_LEADER_FOR_RESIZE, REPLACE_VOLUME, REPLACEMENT_BEGUN
from member.context import ReconcileContext
from member.labels import TIKV_VOLUMES_READY
from member.lifecycle.scaling import Scaling
from member.lifecycle.workload import Workload
from member.outcome import Outcome, Waiting
from member.polling import next_poll
from member.stores import commands as stores_commands
from member.stores import status
from member.stores.failover import failover
from member.stores.kind import TIKV_STORES
from member.stores.scaling import scale_in
from member.stores.status import outage, scale_out, stores_up
from member.tikv import commands, desired, rolling


async def _gate(ctx: ReconcileContext) -> Waiting | None:
    if ctx.tc.spec.recovery_mode and TIKV_VOLUMES_READY not in ctx.tc.metadata.annotations:
        return Waiting(
            "WaitingForVolumes", f"recovery mode: waiting for the restore to set the annotation {TIKV_VOLUMES_READY}"
        )
    return None


def _serving(ctx: ReconcileContext) -> Outcome:
    if not predicates.all_members_ready(ctx.tc, "tikv") and not ctx.status.tikv.boot_strapped:
        return Waiting("NotBootstrapped", "no TiKV store has registered with PD yet", next_poll(ctx, "tikv"))
    return stores_up(ctx, TIKV_STORES)


TIKV = Workload(
    name="tikv",
    observe=lambda ctx: status.observe(ctx, TIKV_STORES),
    outage=lambda ctx: outage(ctx, TIKV_STORES),
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(scale_out(TIKV_STORES), scale_in(TIKV_STORES)),
    rolling=rolling.ROLLING,
    failover=lambda ctx: failover(ctx, TIKV_STORES),
    commands={
        REPLACE_VOLUME: partial(stores_commands.replace_volume, TIKV_STORES),
        REPLACEMENT_BEGUN: partial(stores_commands.replace_volume, TIKV_STORES),
        EVICT_LEADER: commands.act,
        EVICT_LEADER_FOR_RESIZE: commands.act,
    },
)
