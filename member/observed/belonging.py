"""Which pods and claims belong to a cluster: labels select, who controls them decides (lifecycle.md 4.1, 11.4).

Several clusters may share an instance label, and anybody may write it. A pod is ours by its name and by the StatefulSet
of ours that controls it; an orphan is ours by its name, since the StatefulSet will take it. Names are enough where UIDs
would be exact: there is one StatefulSet of a name, and that it is ours is checked where it is written; a pod that an
earlier one of that name has left stands where ours will be.
"""

from kube.objects import Object
from kube.resources import REPLICA_SETS, STATEFUL_SETS, Resource
from member import labels
from member.context import ClusterContext

ADVANCED_STATEFUL_SETS = Resource("apps.pingcap.com", "v1", "statefulsets", "StatefulSet")
"""Those of v1.6's feature gate AdvancedStatefulSet."""

_DISCOVERY = "discovery"


def is_pod_of(cluster: str, pod: Object) -> bool:
    """Whether a pod with the labels of a cluster is one of its own: of a StatefulSet of it, of Discovery, an orphan."""
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
    """As `is_pod_of`; one of our StatefulSet by UID also where others have spoilt the rest of the reference."""
    if is_pod_of(ctx.name, pod):
        return True
    live = ctx.stateful_set(pod.metadata.labels.get(labels.COMPONENT, ""))
    return live is not None and is_controlled_by(pod, live.metadata.uid) and controls(ctx.owner.metadata.uid, live)


def is_of_advanced(cluster: str, pod: Object) -> bool:
    """Whether a pod is controlled by an Advanced StatefulSet with the name of ours."""
    owner = pod.metadata.controller
    if owner is None or not _is(ADVANCED_STATEFUL_SETS, owner.api_version, owner.kind):
        return False
    return owner.name == f"{cluster}-{pod.metadata.labels.get(labels.COMPONENT, '')}"


def is_controlled_by(obj: Object, uid: str) -> bool:
    """Whether an object is controlled by the owner with this UID."""
    return obj.metadata.controller is not None and obj.metadata.controller.uid == uid


def controls(uid: str, obj: Object) -> bool:
    """Whether the owner with this UID controls an object, or can adopt it as nobody does."""
    return obj.metadata.controller is None or is_controlled_by(obj, uid)


def _is(resource: Resource, api_version: str, kind: str) -> bool:
    return (resource.api_version, resource.kind) == (api_version, kind)
