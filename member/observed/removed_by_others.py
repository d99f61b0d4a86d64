"""Pods whose member or store another client has removed from PD, or a command that was withdrawn too late.

Neither etcd nor PD accepts a removed member or store again. The process keeps running and the pod may be Ready, but it
does not serve until it gets new volumes.
"""

from apis import predicates
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.ordinals import desired_ordinals
from apis.pod_commands import REPLACE_VOLUME, replaces_volumes
from apis.tidbcluster import TidbCluster
from kube.objects import Object
from member.context import ClusterContext
from member.labels import MEMBER_ID, STORE_ID
from member.naming import ordinal_of
from member.observed.claims import claims_of
from member.ownership import own_member


def removal_by_others(ctx: ClusterContext, component: str, pod: Object) -> str:
    """The message that another client has removed the pod's member or store, with the way out.

    Empty if neither was removed, or if the operator itself removed it.
    """
    meta = pod.metadata
    if not isinstance(ctx.tc, TidbCluster) or meta.deletion_timestamp or replaces_volumes(meta.annotations):
        return ""
    status, removed = predicates.status_of(ctx.tc, component), ""
    # the operator itself removes an unwanted member from PD before its pod
    is_wanted = ordinal_of(meta.name) in desired_ordinals(ctx.tc, component)
    if status is None or not is_wanted or meta.name in status.failed_pods:
        return ""
    match status:
        case PDStatus(synced=True):
            removed = _member(ctx.tc, status, meta.name, _id(ctx, pod, MEMBER_ID))
        case TiKVStatus(synced=True) | TiFlashStatus(synced=True):
            removed = _store(status, meta.name, _id(ctx, pod, STORE_ID))
    if not removed:
        return ""
    way_out = f"kubectl annotate pod {meta.name} {REPLACE_VOLUME}=true"
    return f"{removed} was removed from PD, and the pod can come back only with new volumes: {way_out}"


def _id(ctx: ClusterContext, pod: Object, label: str) -> str:
    """The id by which PD knew the pod. A recreated pod lacks the label, but its claims keep it."""
    metas = (each.metadata for each in (pod, *claims_of(ctx, pod)))
    return next((meta.labels[label] for meta in metas if label in meta.labels), "")


def _member(tc: TidbCluster, status: PDStatus, pod: str, member: str) -> str:
    known = [*status.members.values(), *status.peer_members.values()]
    if any(each.id == member for each in known) or own_member(tc, known, ordinal_of(pod)):
        return ""
    return f"member {member}" if member else ""


def _store(status: TiKVStatus | TiFlashStatus, pod: str, store: str) -> str:
    has_another = any(each.pod_name == pod for each in status.stores.values())
    return f"store {store}" if store in status.tombstone_stores and not has_another else ""
