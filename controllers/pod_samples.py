"""One metric sample for each pod of a cluster that does not serve, with the reason. Pure, from the caches."""

from collections.abc import Iterator, Mapping

from apis.accessor import workloads
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.ordinals import desired_ordinals, gated
from apis.predicates import status_of
from apis.tidbcluster import TidbCluster
from controllers.cluster_samples import Sample
from dataplane.pd import DISCONNECTED, DOWN, OFFLINE, TOMBSTONE
from kube.objects import Object
from kube.reading import Lister
from member.labels import base_labels
from member.naming import pod_name
from member.observed.pod import OF_CONFIGURATION, OF_IMAGES, Pod, is_in_advanced
from member.observed.pods import is_pod_of

UNREADY = "pod_unready"
"""The family."""

_UNHEALTHY = "MemberUnhealthy"
_STATES = frozenset({DISCONNECTED, DOWN, OFFLINE, TOMBSTONE})
"""The states of stores that a label may have: PD writes the text."""


def of_pods(tc: TidbCluster, pods: Lister) -> Iterator[Sample]:
    """A sample for each wanted pod that is missing or not Ready, or whose member, store or server does not serve."""
    for component in (each for each in workloads(tc) if not each.suspended):
        for name, reason in _unready(tc, component.name, pods).items():
            yield UNREADY, (component.name, name, reason), 1


def _unready(tc: TidbCluster, component: str, pods: Lister) -> Mapping[str, str]:
    cached = pods.list(tc.metadata.namespace, base_labels(tc, component))
    there = {pod.metadata.name: pod for pod in cached if is_pod_of(tc.metadata.name, pod)}
    counted = gated(tc, any(map(is_in_advanced, there.values())))
    wanted = [pod_name(tc, component, ordinal) for ordinal in desired_ordinals(counted, component)]
    unhealthy = _unhealthy(tc, component)
    reasons = {name: reason_of(there.get(name)) or unhealthy.get(name, "") for name in (*wanted, *sorted(there))}
    return {name: reason for name, reason in reasons.items() if reason}


def reason_of(pod: Object | None) -> str:
    """Why a pod is not Ready, in one of a few words; empty if it is Ready."""
    if pod is None:
        return "Missing"
    seen = pod.decode_as(Pod)
    if pod.metadata.deletion_timestamp:
        return "Terminating"
    if seen.is_ready:
        return ""
    if seen.is_unschedulable:
        return "Unschedulable"
    if seen.is_marked_unheard:
        return "NodeSilent"
    return _of_containers(seen) or "NotReady"


def _of_containers(pod: Pod) -> str:
    if pod.lacks_image:
        return "ImagePullBackOff"
    if pod.backs_off or pod.crashes:
        return "CrashLoopBackOff"
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    waiting = {status.state.waiting.reason for status in statuses if status.state.waiting}
    return next(iter(sorted(waiting & (OF_IMAGES | OF_CONFIGURATION))), "")


def _unhealthy(tc: TidbCluster, component: str) -> Mapping[str, str]:
    """The pods whose member, store or server does not serve, as the last reconcile has read it."""
    status = status_of(tc, component)
    match status:
        case PDStatus(synced=True):
            # a member that spans networks has the name of its host
            return {name.partition(".")[0]: _UNHEALTHY for name, member in status.members.items() if not member.health}
        case TiKVStatus(synced=True) | TiFlashStatus(synced=True):
            ill = (store for store in status.stores.values() if not store.is_up)
            return {store.pod_name: f"Store{store.state}" if store.state in _STATES else "StoreNotUp" for store in ill}
        case None | TiKVStatus() | TiFlashStatus():
            return {}
        case _:
            return {name: _UNHEALTHY for name, serves in (status.servers or {}).items() if not serves}
