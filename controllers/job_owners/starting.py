"""What keeps the pod of a Job from starting, told where it can't tell itself; v1.6 leaves that to the pod."""

from controllers.controller import Result
from controllers.job_deletion import live_pods
from controllers.job_owners.job_owner import JobOwner, M
from controllers.job_owners.status import SCHEDULED, with_condition
from controllers.pod_troubles import trouble_of_job
from kube.objects import condition_of
from member.polling import seconds_since

REASON = "PodCannotStart"

LOOK_AGAIN = 30.0
"""Seconds that a pod is given to start, and then until the next look: no event tells of the pods of Jobs."""


def await_start(ctx: JobOwner[M], name: str) -> Result | None:
    """Say in the condition Scheduled why the pod of Job `name` does not start, as long as it has not.

    Nobody can change a Job that was made: who corrects the spec makes the object again. Raises RequeueError, ApiError,
    TransportError.
    """
    now = ctx.status
    said = condition_of(now.get("conditions") or (), SCHEDULED)
    is_waiting = now.get("phase") == SCHEDULED
    is_late = seconds_since(said.get("lastTransitionTime") or "", ctx.now) >= LOOK_AGAIN
    trouble = what_keeps_it(ctx, name) if is_waiting and is_late else ""
    if trouble != (said.get("message") or ""):
        reason = REASON if trouble else ""
        after = with_condition(now, SCHEDULED, ctx.now, reason, trouble)
        ctx.write(after | {"phase": now.get("phase")})
        if trouble:
            ctx.warn(SCHEDULED, reason, trouble)
    return Result(requeue_after=LOOK_AGAIN) if is_waiting else None


def what_keeps_it(ctx: JobOwner[M], name: str) -> str:
    """What keeps the pod of Job `name` from starting, and the way out; empty where nothing is known.

    Raises ApiError, TransportError.
    """
    trouble = trouble_of_job(ctx.runtime, ctx.namespace, name, live_pods(ctx.runtime, ctx.namespace, name))
    way_out = f"correct that, or delete this {ctx.resource.kind} and create it again with another spec"
    return f"{trouble}; {way_out}" if trouble else ""
