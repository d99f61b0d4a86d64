"""What is told of a name of ours that others have, or delete each time it is made."""

from kube.apply import ForeignOwner
from kube.contests import DeletedEachTime
from kube.taken_names import TakenNames
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
