"""PD pods whose member was removed behind our back: by hand, or by a command that was taken back too late.

etcd never takes a removed member back. Its process goes on, and its pod may be Ready, but it serves no more until it
has new volumes.
"""

from apis import pod_commands
from apis.tidbcluster import TidbCluster
from kube.objects import Object
from member.context import ClusterContext
from member.labels import MEMBER_ID
from member.naming import ordinal_of
from member.ownership import own_member


def removed_member(ctx: ClusterContext, pod: Object) -> str:
    """That the member of a PD pod was removed, and the way out; empty where it was not, or by ourselves."""
    if not isinstance(ctx.tc, TidbCluster):
        return ""
    meta, status = pod.metadata, ctx.tc.status.pd
    member = meta.labels.get(MEMBER_ID, "")
    ours = pod_commands.replaces_volumes(meta.annotations)
    recorded = {record.pod_name for record in status.failure_members.values()}
    if not member or not status.synced or meta.deletion_timestamp or ours or meta.name in recorded:
        return ""
    known = [*status.members.values(), *status.peer_members.values()]
    if any(each.id == member for each in known) or own_member(ctx.tc, known, ordinal_of(meta.name)):
        return ""
    way_out = f"kubectl annotate pod {meta.name} {pod_commands.REPLACE_VOLUME}=true"
    return f"member {member} was removed from PD, which takes the pod back with new volumes alone: {way_out}"
