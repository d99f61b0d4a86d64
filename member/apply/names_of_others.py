"""What is told of a name of ours that others have, or delete each time it is made."""

from kube.apply import ForeignOwner, require_ours
from kube.contests import DeletedEachTime
from kube.objects import Object
from kube.resources import Resource
from member.context import ClusterContext
from member.labels import base_labels, object_meta
from member.memory.taken_names import TakenNames
from member.outcome import CONTESTED, Refused, Waiting

FOREIGN_OWNER = "ForeignOwner"

NOT_OURS = (ForeignOwner, DeletedEachTime)


def of_others(error: ForeignOwner | DeletedEachTime) -> Waiting | Refused:
    """What has our name is left alone until it changes, which is an event; what others delete, for a while."""
    if isinstance(error, DeletedEachTime):
        return Waiting(CONTESTED, str(error), error.look_again)
    if error.is_former:
        return Waiting(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)
    return Refused(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)


def require_own(ctx: ClusterContext, resource: Resource, component: str, live: Object) -> None:
    """Raise ForeignOwner for an object that has the name of one of a component, and is not the cluster's."""
    require_ours(resource, {"metadata": object_meta(ctx.tc, live.metadata.name, base_labels(ctx.tc, component))}, live)
