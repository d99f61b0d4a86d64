"""Deletion of a Job that a custom resource owns: after a live read, by UID, its pods first."""

from collections.abc import Callable, Sequence

from controllers.runtime import Runtime
from kube.actions import Emit
from kube.deletion import Destroyer
from kube.events import NORMAL
from kube.objects import Object
from kube.resources import JOBS, PODS, Resource
from member.actions import Delete
from member.evidence import shown_by
from member.outcome import Waiting
from member.polling import seconds_since

JOB_TERMINATING = 2.0
"""Seconds until the operator checks a Job again that is being deleted."""


def job_terminating(name: str) -> Waiting:
    """The wait for the end of a Job that is being deleted, and of its pods."""
    return Waiting(
        "JobTerminating", f"waiting for Job {name}, which is being deleted, and its pods to end", JOB_TERMINATING
    )


_PATIENCE = 60.0
"""Seconds that a deleted pod may exceed its deadline before `lingering_pod` reports it."""
_ENDED = frozenset({"Succeeded", "Failed"})


async def delete_job(
    runtime: Runtime,
    owner: Object,
    resource: Resource,
    name: str,
    may_go: Callable[[Object], bool] = lambda _job: True,
) -> bool:
    """Delete the Job `name` of `owner`, an object of `resource`; return True if the Job and its pods are gone.

    A Job of another owner, or for which `may_go` is False, is kept and counts as gone. Raises Conflict, other
    ApiErrors, TransportError.
    """
    namespace = owner.metadata.namespace
    seen = Destroyer(runtime.client).observe(JOBS, name, namespace)
    if seen is None:
        return not pod_at_work(runtime, namespace, name)
    if not _is_of(seen.object, owner) or not may_go(seen.object):
        return True
    if not seen.object.metadata.deletion_timestamp:
        await Delete(
            seen, shown_by(seen, f"{resource.kind} {owner.key} needs the Job no longer"), propagation="Foreground"
        )
        what = f"delete job {namespace}/{name} for cluster {owner.metadata.name} {resource.kind} successful"
        await Emit(owner, NORMAL, "SuccessfulDelete", what)
    return False


def pod_at_work(runtime: Runtime, namespace: str, name: str) -> str:
    """The name of a pod of the Job `name` that has not ended, read live; empty if there is none.

    Pods can outlive their Job.

    Raises ApiError, TransportError.
    """
    pods = live_pods(runtime, namespace, name)
    at_work = (pod for pod in pods if (pod.decode().get("status") or {}).get("phase") not in _ENDED)
    return next((obj.metadata.name for obj in at_work), "")


def lingering_pod(runtime: Runtime, namespace: str, name: str) -> str:
    """A pod of the Job `name` that runs long after its deadline, e.g. "pod x on node y"; empty if there is none.

    Raises ApiError, TransportError.
    """
    now = runtime.clock.wall()
    for pod in live_pods(runtime, namespace, name):
        body = pod.decode()
        has_ended = (body.get("status") or {}).get("phase") in _ENDED
        if not has_ended and seconds_since(pod.metadata.deletion_timestamp or "", now) > _PATIENCE:
            node = body["spec"].get("nodeName")
            return f"pod {pod.metadata.name}" + (f" on node {node}" if node else "")
    return ""


def live_pods(runtime: Runtime, namespace: str, name: str) -> Sequence[Object]:
    """The pods of the Job `name`, read live. Raises ApiError, TransportError."""
    return runtime.client.list_page(PODS, namespace, label_selector=f"job-name={name}").items


def _is_of(job: Object, owner: Object) -> bool:
    controller = job.metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid
