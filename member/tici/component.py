"""TiCI's meta servers and workers. Their API is not documented, so only Kubernetes reports on them (TICI-33 to 37)."""

from dataclasses import replace
from functools import partial

from apis import predicates
from apis.component_statuses import TiCIStatus
from apis.ordinals import desired_replicas
from member.context import ReconcileContext
from member.lifecycle.workload import Workload
from member.observed.status import observe_pods
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.tici import changefeed, desired
from member.tici.desired import META, WORKER


def _observe(ctx: ReconcileContext, name: str) -> Outcome:
    status = _status(ctx, name)
    observe_pods(ctx, name, status)
    status.synced = status.runs and status.ready_replicas == desired_replicas(ctx.tc, name)
    if name == META:
        changefeed.observe(ctx)
    return Done()


def _status(ctx: ReconcileContext, name: str) -> TiCIStatus:
    if name == META:
        ctx.status.tici_meta = ctx.status.tici_meta or TiCIStatus()
        return ctx.status.tici_meta
    ctx.status.tici_worker = ctx.status.tici_worker or TiCIStatus()
    return ctx.status.tici_worker


async def _gate(ctx: ReconcileContext, name: str) -> Waiting | None:
    """The wait before the first creation for TiDB, which keeps the catalogue, and for the Secret with the keys.

    v1.7 waits for TiDB in each round (TICI-7).
    """
    if predicates.tells_of_stateful_set(ctx.tc, name) or ctx.stateful_set(name):
        return None
    if not predicates.all_members_ready(ctx.tc, "tidb"):
        what = "TiCI keeps its catalogue in TiDB, which is not healthy yet"
        return Waiting("WaitingForTiDB", what, next_poll(ctx, name))
    keys = changefeed.bucket_keys(ctx, desired.s3_of(ctx.tc).secret_name)
    return keys if isinstance(keys, Waiting) else None


def _workload(name: str) -> Workload:
    return Workload(
        name=name,
        observe=partial(_observe, name=name),
        gate=partial(_gate, name=name),
        services=partial(desired.services, name=name),
        content=partial(desired.content, name=name),
        stateful_set=lambda tc, config_map: desired.stateful_set(tc, name, config_map),
        as_built_by_v16=lambda tc, made: desired.as_built_by_v17(tc, name, made),
    )


TICI_META = replace(_workload(META), housekeeping=changefeed.maintain)
TICI_WORKER = _workload(WORKER)
