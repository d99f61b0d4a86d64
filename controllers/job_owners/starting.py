"""What keeps the pod of a Job from starting, told where it can't tell itself; v1.6 leaves that to the pod."""

from controllers.controller import Result
from controllers.job_deletion import live_pods
from controllers.job_owners.job_owner import JobOwner, M
from controllers.job_owners.status import SCHEDULED
from controllers.pod_troubles import trouble_of_job
from kube.objects import Json, condition_of
from member.polling import seconds_since

REASON = "PodCannotStart"

LOOK_AGAIN = 30.0
"""Seconds that a pod is given to start, and then until the next look: no event tells of the pods of Jobs."""


def await_start(
    ctx: JobOwner[M], name: str, kind: str = SCHEDULED, *, command: str = "", is_made_again: bool = False
) -> Result | None:
    """Say in the condition with which Job `name` was made, of this `kind`, why its pod does not start.

    A `command` has that condition twice: in its own part of the status, and in the whole, if that stands so as well.
    Nobody can change a Job that was made: who corrects the spec makes the object again, or the Job go if another one
    `is_made_again`. Raises RequeueError, ApiError, TransportError.
    """
    now = ctx.status
    parts = now.get("logSubCommandStatuses") or {}
    part = parts.get(command) or {} if command else now
    said = condition_of(part.get("conditions") or (), kind)
    is_waiting = bool(said) and part.get("phase") == kind
    is_late = seconds_since(said.get("lastTransitionTime") or "", ctx.now) >= LOOK_AGAIN
    trouble = what_keeps_it(ctx, name, is_made_again=is_made_again) if is_waiting and is_late else ""
    if trouble != (said.get("message") or ""):
        after = _with_trouble(now, kind, trouble) if part is now or now.get("phase") == part.get("phase") else now
        told = {"logSubCommandStatuses": parts | {command: _with_trouble(part, kind, trouble)}} if command else {}
        ctx.write(after | told)
        if trouble:
            ctx.warn(kind, REASON, trouble)
    return Result(requeue_after=LOOK_AGAIN) if is_waiting else None


def _with_trouble(part: Json, kind: str, trouble: str) -> Json:
    """A status, or a part of it, whose condition tells of a trouble, or of none any more; all else stays."""
    told = {"reason": REASON, "message": trouble} if trouble else {}

    def changed(condition: Json) -> Json:
        return {key: text for key, text in condition.items() if key not in ("reason", "message")} | told

    conditions = part.get("conditions") or ()
    return part | {"conditions": [changed(each) if each.get("type") == kind else each for each in conditions]}


def what_keeps_it(ctx: JobOwner[M], name: str, *, is_made_again: bool = False) -> str:
    """What keeps the pod of Job `name` from starting, and the way out; empty where nothing is known.

    Raises ApiError, TransportError.
    """
    trouble = trouble_of_job(ctx.runtime, ctx.namespace, name, live_pods(ctx.runtime, ctx.namespace, name))
    kind = ctx.resource.kind
    way_out = f"delete this {kind} and create it again with another spec"
    if is_made_again:
        way_out = f"change the spec of this {kind} and delete Job {name}, which is made again"
    return f"{trouble}; correct that, or {way_out}" if trouble else ""
