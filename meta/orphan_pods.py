"""The stage `orphan_pods_cleaner`: pods that wait forever for a deleted claim (lifecycle.md 11.1, I38).

A StatefulSet creates claims only together with the pod. If the claim of an unscheduled pod was deleted, the operator
must delete the pod, so that both are recreated.
"""

from collections.abc import Mapping
from functools import reduce
from operator import and_, attrgetter

from apis.components import component_names
from kube.actions import Emit
from kube.deletion import Destroyer, LiveObject
from kube.events import NORMAL
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.actions import Delete
from member.context import ClusterContext
from member.evidence import Evidence, look_up
from member.observed.claims import own_claims
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Done, Outcome, Waiting
from meta.apart import conclude_all


async def act(ctx: ClusterContext) -> Outcome:
    """Delete the orphans; a pod whose claims cannot be read stays, and does not stop the others.

    Raises Conflict, other ApiErrors, TransportError.
    """
    if ctx.tc.spec.paused:
        return Done("paused")
    deleted: list[str] = []

    async def look(pod: Object) -> None:
        missing = _missing_claims(ctx, pod)
        if missing and await _delete(ctx, pod, missing):
            deleted.append(f"{pod.metadata.name} ({', '.join(missing)})")

    holding = component_names(attrgetter("claims.hold_data"), ctx.tc.kind)
    await conclude_all(look(pod) for name in holding for pod in pods_of(ctx, name) if may_be_orphan(pod))
    if not deleted:
        return Done()
    return Waiting("OrphanPod", f"recreating pods whose PersistentVolumeClaims are missing: {', '.join(deleted)}")


def may_be_orphan(pod: Object) -> bool:
    """True if the pod has claims and no node yet. Once it has run, Kubernetes protects its claims."""
    return not pod.metadata.deletion_timestamp and not pod.decode_as(Pod).spec.node_name and bool(own_claims(pod))


def _missing_claims(ctx: ClusterContext, pod: Object) -> Mapping[str, Evidence]:
    """The claims that do not exist according to a live read (F1), by name."""
    cached, namespace = ctx.listers.persistent_volume_claims, ctx.namespace
    unseen = [name for name in own_claims(pod) if cached.get(namespace, name) is None]
    found = {name: look_up(ctx, PERSISTENT_VOLUME_CLAIMS, name, namespace) for name in unseen}
    return {name: gone for name, gone in found.items() if isinstance(gone, Evidence)}


async def _delete(ctx: ClusterContext, pod: Object, missing: Mapping[str, Evidence]) -> bool:
    name = pod.metadata.name
    seen = Destroyer(ctx.deps.client).observe(PODS, name, ctx.namespace)
    if seen is None or not _is_still(seen, pod):
        return False
    await Delete(seen, reduce(and_, missing.values()))
    what = f"delete Pod {name} in {ctx.tc.kind} {ctx.name} successful: {', '.join(missing)} does not exist"
    await Emit(ctx.owner, NORMAL, "SuccessfulDelete", what)
    return True


def _is_still(seen: LiveObject, pod: Object) -> bool:
    """True if it is the same pod as in the decision, and still an orphan."""
    return seen.object.metadata.uid == pod.metadata.uid and may_be_orphan(seen.object)
