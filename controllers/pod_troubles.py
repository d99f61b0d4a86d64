"""The reasons why pods of Jobs and of small StatefulSets do not start, read live (`member.observed.troubles`)."""

from collections.abc import Sequence

from controllers.runtime import Runtime
from kube.objects import Object
from kube.resources import JOBS, PODS, STATEFUL_SETS, Resource
from member.observed.pod import Pod
from member.observed.troubles import in_the_way, read_complaint, trouble_of


def trouble_of_job(runtime: Runtime, namespace: str, name: str, pods: Sequence[Object]) -> str:
    """The reason why the newest of a Job's `pods` does not start, or the Job has no pod; empty if it is unknown."""
    if not pods:
        return _complaint(runtime, namespace, JOBS, name)
    newest = max(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    trouble = _trouble(runtime, newest)
    return f"pod {newest.metadata.name}: {trouble}" if trouble else ""


def trouble_of_pod(runtime: Runtime, namespace: str, stateful_set: str, name: str) -> str:
    """The reason why a pod of a StatefulSet is not Ready; empty if it is unknown. Raises ApiError, TransportError."""
    pod = runtime.client.find(PODS, name, namespace)
    if pod is None:
        return _complaint(runtime, namespace, STATEFUL_SETS, stateful_set, of_pod=name)
    owner = pod.metadata.controller
    if owner is None or (owner.kind, owner.name) != (STATEFUL_SETS.kind, stateful_set):
        return in_the_way(pod, stateful_set)
    return "" if pod.decode_as(Pod).is_ready else _trouble(runtime, pod)


def _trouble(runtime: Runtime, pod: Object) -> str:
    namespace = pod.metadata.namespace
    return trouble_of(pod, lambda resource, name, uid: _complaint(runtime, namespace, resource, name, uid=uid))


def _complaint(
    runtime: Runtime, namespace: str, resource: Resource, name: str, *, uid: str = "", of_pod: str = ""
) -> str:
    return read_complaint(runtime.client, runtime.clock, namespace, resource, name, uid=uid, of_pod=of_pod)
