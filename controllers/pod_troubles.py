"""Why pods of Jobs, and of kinds with a pod or two, do not start; see `member.observed.troubles`. Read live."""

from collections.abc import Sequence

from controllers.runtime import Runtime
from kube.objects import Object
from kube.resources import JOBS, PODS, STATEFUL_SETS, Resource
from member.observed.pod import Pod
from member.observed.troubles import in_the_way, read_complaint, trouble_of


def trouble_of_job(runtime: Runtime, namespace: str, name: str, pods: Sequence[Object]) -> str:
    """What keeps the newest of a Job's `pods` from starting, or the Job from making one; empty: nothing is known."""
    if not pods:
        return _complaint(runtime, namespace, JOBS, name)
    newest = max(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    trouble = _trouble(runtime, newest)
    return f"pod {newest.metadata.name}: {trouble}" if trouble else ""


def trouble_of_pod(runtime: Runtime, namespace: str, stateful_set: str, name: str) -> str:
    """What keeps a pod of a StatefulSet from being Ready; empty where nothing is known.

    Raises ApiError, TransportError.
    """
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
