"""Which pods and claims belong to a cluster: labels select, the controller decides (lifecycle.md 4.1, 11.4).

Several clusters may share an instance label, and any user can set it. A pod belongs to the cluster if it has the name
and the StatefulSet of one of its pods. An orphan needs only the name, because the StatefulSet will adopt it. Comparing
names instead of UIDs is enough: only one StatefulSet has a name, and the operator checks its owner before each write.
A pod that an earlier StatefulSet of this name has left occupies the name of a pod of the cluster.
"""

from kube.objects import Object
from kube.resources import REPLICA_SETS, STATEFUL_SETS, Resource
from member import labels
from member.context import ClusterContext

ADVANCED_STATEFUL_SETS = Resource("apps.pingcap.com", "v1", "statefulsets", "StatefulSet")
"""The Advanced StatefulSets of v1.6's feature gate AdvancedStatefulSet."""

_DISCOVERY = "discovery"


def is_pod_of(cluster: str, pod: Object) -> bool:
    """True if a pod with a cluster's labels is its own: its StatefulSet or Discovery controls it, or nothing does."""
    component, owner = pod.metadata.labels.get(labels.COMPONENT, ""), pod.metadata.controller
    workload = f"{cluster}-{component}"
    if component == _DISCOVERY:
        of_deployment = owner is not None and _is(REPLICA_SETS, owner.api_version, owner.kind)
        return of_deployment and pod.metadata.name.startswith(f"{workload}-")
    stem, _, ordinal = pod.metadata.name.rpartition("-")
    if stem != workload or not ordinal.isdecimal():
        return False
    return owner is None or (_is(STATEFUL_SETS, owner.api_version, owner.kind) and owner.name == workload)


def is_own_pod(ctx: ClusterContext, pod: Object) -> bool:
    """True if `is_pod_of`, or if the pod's controller has the UID of the cluster's StatefulSet.

    The UID also identifies pods whose owner reference another client has damaged.
    """
    if is_pod_of(ctx.name, pod):
        return True
    live = ctx.stateful_set(pod.metadata.labels.get(labels.COMPONENT, ""))
    return live is not None and is_controlled_by(pod, live.metadata.uid) and controls(ctx.owner.metadata.uid, live)


def is_of_advanced(cluster: str, pod: Object) -> bool:
    """True if an Advanced StatefulSet with the name of the cluster's StatefulSet controls the pod."""
    owner = pod.metadata.controller
    if owner is None or not _is(ADVANCED_STATEFUL_SETS, owner.api_version, owner.kind):
        return False
    return owner.name == f"{cluster}-{pod.metadata.labels.get(labels.COMPONENT, '')}"


def is_controlled_by(obj: Object, uid: str) -> bool:
    """True if the owner with this UID controls the object."""
    return obj.metadata.controller is not None and obj.metadata.controller.uid == uid


def controls(uid: str, obj: Object) -> bool:
    """True if the owner with this UID controls the object, or can adopt it because it has no controller."""
    return obj.metadata.controller is None or is_controlled_by(obj, uid)


def _is(resource: Resource, api_version: str, kind: str) -> bool:
    return (resource.api_version, resource.kind) == (api_version, kind)
