"""The status of the Job, copied into the TidbInitializer, and the reason of its failure (other-resources.md 2.1)."""

from collections.abc import Sequence

from apis.decoding import decode
from apis.initializers import TidbInitializer, TidbInitializerStatus
from controllers.conditions import READY
from controllers.pod_troubles import trouble_of_job
from controllers.simple_kind import Reconcile
from kube.actions import Emit
from kube.events import NORMAL
from kube.objects import Json, Object, condition_of
from kube.resources import PODS
from member.backups.pods import condition_of_job, finished
from member.initializer.desired import RUN
from member.observed.pod import Pod
from member.outcome import Done, Outcome, Refused, Waiting

PENDING, RUNNING, COMPLETED, FAILED = "Pending", "Running", "Completed", "Failed"

_WAY_OUT = f"to run it again, give annotation {RUN} another value"
_REASON = "InitializationFailed"
_LOOK_AGAIN = 10.0
"""Seconds until the operator checks the Job's pod again."""


def has_ended(job: Object) -> bool:
    """True if a Job is Complete or Failed."""
    return bool(finished(job.decode()))


async def follow(ctx: Reconcile[TidbInitializer], job: Object) -> Outcome:
    """Copy the status of the Job and return the outcome. Raises ApiError, TransportError."""
    body = job.decode()
    ctx.model.status = decode(body.get("status") or {}, TidbInitializerStatus)
    ended, name = finished(body), job.metadata.name
    if not ended:
        ctx.model.status.phase = RUNNING
        return Waiting("Initializing", f"waiting for Job {name} to end; {_what_it_does(ctx, job)}", _LOOK_AGAIN)
    if ended == "Failed":
        return _failed(ctx, _why(ctx, job))
    ctx.model.status.phase = COMPLETED
    await Emit(ctx.owner, NORMAL, "Initialized", f"Job {name} has completed")
    return Done()


def lost(ctx: Reconcile[TidbInitializer]) -> Outcome:
    """The refusal after a Job was deleted before it ended; v1.6 creates another, which runs the SQL twice."""
    return _failed(ctx, "the Job was deleted before it ended")


def recorded_outcome(ctx: Reconcile[TidbInitializer]) -> Outcome:
    """The outcome recorded at the end of the Job, whose pod may be gone."""
    if ctx.model.status.phase == COMPLETED:
        return Done()
    condition = condition_of(ctx.model.status.conditions, READY)
    if condition.get("reason") == _REASON:
        return Refused(_REASON, str(condition.get("message") or "").removeprefix("job: "))
    failed = condition_of(ctx.model.status.conditions, "Failed")
    return Refused(_REASON, f"{failed.get('message') or 'the Job has failed'}; {_WAY_OUT}")


def _failed(ctx: Reconcile[TidbInitializer], why: str) -> Refused:
    ctx.model.status.phase = FAILED
    return Refused(_REASON, f"{why}; {_WAY_OUT}")


def _what_it_does(ctx: Reconcile[TidbInitializer], job: Object) -> str:
    """The reason why the Job's pod does not start, or else the command that shows its log."""
    name = job.metadata.name
    pods = ctx.lister(PODS).list(ctx.namespace, _of_job(job))
    trouble = trouble_of_job(ctx.owned.runtime, ctx.namespace, name, pods)
    return trouble or f"kubectl logs job/{name} shows what it does"


def has_begun(ctx: Reconcile[TidbInitializer], job: Object) -> bool:
    """True if a pod of a Job, read live, may have run SQL, or there is no pod. Raises ApiError, TransportError."""
    pods = [pod.decode_as(Pod) for pod in _live_pods(ctx, job)]
    return not pods or any(pod.has_run or not pod.trouble for pod in pods)


def _live_pods(ctx: Reconcile[TidbInitializer], job: Object) -> Sequence[Object]:
    query = ",".join(f"{key}={value}" for key, value in _of_job(job).items())
    return ctx.owned.runtime.client.list_page(PODS, ctx.namespace, label_selector=query).items


def _of_job(job: Object) -> dict[str, str]:
    return {"controller-uid": job.metadata.uid}


def _why(ctx: Reconcile[TidbInitializer], job: Object) -> str:
    """The message of the failed container, else the message of Kubernetes about the Job."""
    pods = ctx.lister(PODS).list(ctx.namespace, _of_job(job)) or _live_pods(ctx, job)
    messages = [message for pod in pods if (message := _last_words(pod.decode().get("status") or {}))]
    return (
        messages[-1]
        if messages
        else str(condition_of_job(job.decode(), "Failed").get("message") or "the Job has failed")
    )


def _last_words(status: Json) -> str:
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    ended = [(container.get("state") or {}).get("terminated") or {} for container in containers]
    messages = [str(each.get("message") or "").strip() for each in ended if each.get("exitCode")]
    return next(filter(None, messages), "")
