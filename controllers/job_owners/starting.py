"""Reports why the pod of a Job does not start; in v1.6 only the pod itself reports, and it does not run."""

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
"""Seconds that a pod has to start, and between later checks: the operator does not watch the pods of Jobs."""


async def await_start(
    ctx: JobOwner[M], name: str, kind: str = SCHEDULED, *, command: str = "", is_recreated: bool = False
) -> Outcome | None:
    """Write the reason why the pod of Job `name` does not start into the condition `kind`.

    The condition of a sub-command `command` is in its own part of the status, and in the whole status if that has the
    same phase. Jobs are immutable: after correcting the spec, the user recreates the object, or, if the Job
    `is_recreated`, deletes the Job. Raises ApiError, TransportError.
    """
    now = ctx.status
    parts = now.get("logSubCommandStatuses") or {}
    part = parts.get(command) or {} if command else now
    condition = condition_of(part.get("conditions") or (), kind)
    is_waiting = bool(condition) and part.get("phase") == kind
    is_late = not time_left(condition.get("lastTransitionTime") or "", LOOK_AGAIN, ctx.now)
    trouble = what_keeps_it(ctx, name, is_recreated=is_recreated) if is_waiting and is_late else ""
    is_lost = not trouble and condition.get("reason") == NODE_LOST  # `report_lost_pod` reports that below
    if trouble != (condition.get("message") or "") and not is_lost:
        words = kind, REASON if trouble else "", trouble
        after = with_words(now, *words) if part is now or now.get("phase") == part.get("phase") else now
        commands = {"logSubCommandStatuses": parts | {command: with_words(part, *words)}} if command else {}
        await ctx.write(after | commands)
        if trouble:
            await ctx.warn(kind, REASON, trouble)
    if not is_waiting and not _has_to_end(ctx, name):
        return None
    if not trouble:
        await ctx.report_lost_pod(name)
    return Waiting(REASON, trouble, LOOK_AGAIN) if trouble else Done(retry_after=LOOK_AGAIN)


def _has_to_end(ctx: JobOwner[M], name: str) -> bool:
    """True if, by the cached Job `name`, Kubernetes waits for one of its pods to end, which may cause no event."""
    job = ctx.cached_job(name)
    body = job.decode() if job else {}
    return bool((body.get("status") or {}).get("terminating") or condition_of_job(body, "FailureTarget"))


def what_keeps_it(ctx: JobOwner[M], name: str, *, is_recreated: bool = False) -> str:
    """The reason why the pod of Job `name` does not start, and the way out; empty if it is unknown.

    Raises ApiError, TransportError.
    """
    trouble = trouble_of_job(ctx.runtime, ctx.namespace, name, live_pods(ctx.runtime, ctx.namespace, name))
    kind = ctx.resource.kind
    way_out = f"delete this {kind} and create it again with another spec"
    if is_recreated:
        way_out = f"change the spec of this {kind} and delete Job {name}, which the operator then recreates"
    return f"{trouble}; correct that, or {way_out}" if trouble else ""
