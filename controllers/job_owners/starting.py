"""What keeps the pod of a Job from starting, told where it can't tell itself; v1.6 leaves that to the pod."""

from controllers.job_deletion import live_pods
from controllers.job_owners.job_owner import NODE_LOST, JobOwner, M
from controllers.job_owners.status import SCHEDULED, with_words
from controllers.pod_troubles import trouble_of_job
from kube.objects import condition_of
from member.backups.pods import condition_of_job
from member.outcome import Done, Outcome, Waiting
from member.polling import time_left

REASON = "PodCannotStart"

LOOK_AGAIN = 30.0
"""Seconds that a pod is given to start, and then until the next look: no event tells of the pods of Jobs."""


def await_start(
    ctx: JobOwner[M], name: str, kind: str = SCHEDULED, *, command: str = "", is_made_again: bool = False
) -> Outcome | None:
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
    is_late = not time_left(said.get("lastTransitionTime") or "", LOOK_AGAIN, ctx.now)
    trouble = what_keeps_it(ctx, name, is_made_again=is_made_again) if is_waiting and is_late else ""
    is_lost = not trouble and said.get("reason") == NODE_LOST  # said below
    if trouble != (said.get("message") or "") and not is_lost:
        words = kind, REASON if trouble else "", trouble
        after = with_words(now, *words) if part is now or now.get("phase") == part.get("phase") else now
        told = {"logSubCommandStatuses": parts | {command: with_words(part, *words)}} if command else {}
        ctx.write(after | told)
        if trouble:
            ctx.warn(kind, REASON, trouble)
    if not is_waiting and not _has_to_end(ctx, name):
        return None
    if not trouble:
        ctx.tell_of_lost(name)
    return Waiting(REASON, trouble, LOOK_AGAIN) if trouble else Done(retry_after=LOOK_AGAIN)


def _has_to_end(ctx: JobOwner[M], name: str) -> bool:
    """Whether Kubernetes waits for a pod of Job `name` to end, as cached: of that no further event tells."""
    job = ctx.cached_job(name)
    body = job.decode() if job else {}
    return bool((body.get("status") or {}).get("terminating") or condition_of_job(body, "FailureTarget"))


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
