"""Pump: receives TiDB's binlogs, and stores them until drainers have read them (lifecycle.md 6.6).

v1.6 leaves its restarts to Kubernetes. This operator restarts one pod after another, the next when the node of the last
one is online again.
"""

from apis import binlog, images
from apis.accessor import component
from dataplane.pump import PUMP_ONLINE
from kube.objects import Json, Object
from member.context import ReconcileContext
from member.evidence import pump_node_gone
from member.lifecycle.rolling import Rolling
from member.lifecycle.scaling import ScaleOut, Scaling
from member.lifecycle.stateless import scale_out_parallelism
from member.lifecycle.workload import Workload
from member.observed.pods import none_has_image
from member.observed.status import image_of
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll
from member.pump import desired, scaling
from member.pump.status import is_online, observe


def _serving(ctx: ReconcileContext) -> Outcome:
    wanted = ctx.tc.spec.pump.replicas if ctx.tc.spec.pump else 0
    members = ctx.status.pump.members
    online = sum(ctx.status.pump.health)
    if online == len(members) == wanted:
        return Done(f"{online} of {wanted} nodes are online")
    others = ", ".join(f"{member.node_id} is {member.state}" for member in members if member.state != PUMP_ONLINE)
    what = f"{online} of {wanted} Pump nodes are online{'; ' + others if others else ''}"
    return Waiting("PumpNodesNotOnline", what, next_poll(ctx, "pump"))


def _wait_for_nodes(ctx: ReconcileContext) -> Waiting | None:
    """The wait for a current report of PD: only PD knows which pods have a node (F7)."""
    if isinstance(ctx.observations.get("pump", Done()), Done):
        return None
    what = "waiting for PD to report the Pump nodes before scaling out"
    return Waiting("PumpNodesUnknown", what, next_poll(ctx, "pump"))


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    return "" if is_online(ctx, pod.metadata.name) else "is online"


_OUT = ScaleOut(
    limit=scale_out_parallelism,
    allowed=_wait_for_nodes,
    is_member=is_online,
    volumes_unused=pump_node_gone,
)


def _refused_upgrade(ctx: ReconcileContext) -> Refused | None:
    """The refusal of a version without Pump while TiDB needs Pump.

    Without binlogs the upgrade of the other components continues, and Pump alone keeps its version.
    """
    tidb = ctx.tc.spec.tidb
    return _no_such_pump(ctx) if tidb is not None and tidb.binlog_enabled else None


def _no_such_pump(ctx: ReconcileContext) -> Refused | None:
    """The refusal of a version that Pump does not have: its image does not exist, and TiDB cannot commit meanwhile."""
    live = ctx.stateful_set("pump")
    if ctx.tc.spec.pump is None or not ctx.tc.spec.pump.replicas or live is None:
        return None
    image, wanted = image_of(live.decode(), "pump"), component(ctx.tc, "pump").version
    running = images.version_of(image)
    if not binlog.goes(running, wanted):
        return None
    if none_has_image(ctx, "pump", image):
        # reverting a mistaken version must work
        return None
    what = f"there is no Pump {wanted}, since {binlog.REMOVED_IN} has removed TiDB Binlog; no pod is restarted for it"
    return Refused("BinlogRemoved", f"{what}. Set spec.pump.version to {running}, or scale spec.pump.replicas to 0")


async def _begin(ctx: ReconcileContext, _live: Json, _desired: Json) -> Refused | None:
    return _no_such_pump(ctx)


PUMP = Workload(
    name="pump",
    observe=observe,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scaling.SCALE_IN),
    rolling=Rolling(
        unmet_condition=_unmet_condition,
        refused_upgrade=_refused_upgrade,
        begin=_begin,
    ),
    as_built_by_v16=desired.as_built_by_v16,
)
