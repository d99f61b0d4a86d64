"""TiCDC: starts when PD and TiKV serve, and moves tables away before a pod goes (lifecycle.md 6.8, 7.7, 8.8)."""

from dataclasses import replace

from apis import predicates
from apis.ordinals import desired_replicas
from kube.objects import Object
from member.context import ReconcileContext
from member.evidence import Evidence
from member.lifecycle import stateless
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.rolling import Rolling
from member.lifecycle.workload import Workload
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Done, NotDone, Outcome, Waiting
from member.polling import next_poll
from member.ticdc import desired
from member.ticdc.handover import Departure, forget, hand_over
from member.ticdc.status import observe

_RESTART, _REMOVAL = "handover before a restart", "handover before a removal"


def _serving(ctx: ReconcileContext) -> Outcome:
    captures = ctx.status.ticdc.captures
    if predicates.all_members_ready(ctx.tc, "ticdc"):
        return Done(f"{len(captures)} of {len(captures)} captures are up")
    ill = ", ".join(pod for pod, capture in captures.items() if not capture.ready)
    return Waiting("TiCDCCaptureNotReady", f"waiting for {ill or 'all captures'} to be up", next_poll(ctx, "ticdc"))


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    capture = ctx.status.ticdc.captures.get(pod.metadata.name)
    return "" if capture and capture.ready else "is a capture that is up"


async def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    return await hand_over(Departure(ctx, pod, _RESTART, others_stay=desired_replicas(ctx.tc, "ticdc") > 1))


async def _resume(ctx: ReconcileContext, selected: str) -> None:
    for pod in pods_of(ctx, "ticdc"):
        if pod.metadata.name != selected:
            forget(ctx, pod, _RESTART)


async def _drain(removal: PodRemoval) -> Evidence | NotDone:
    left = await stateless.SCALING.in_.drain(removal)
    pod = removal.pod
    # a pod that is not Ready is no capture, and has nothing to hand over
    if not isinstance(left, Evidence) or pod is None or not pod.decode_as(Pod).is_ready:
        return left
    others_stay = desired_replicas(removal.ctx.tc, "ticdc") > 0
    return await hand_over(Departure(removal.ctx, pod, _REMOVAL, others_stay)) or left


ROLLING = Rolling(unmet_condition=_unmet_condition, prepare=_prepare, resume=_resume)
SCALING = replace(stateless.SCALING, in_=replace(stateless.SCALING.in_, drain=_drain))

TICDC = Workload(
    name="ticdc",
    observe=observe,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    scaling=SCALING,
    rolling=ROLLING,
    serving=_serving,
)
