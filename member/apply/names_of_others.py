"""The outcome for a name that another controller has taken, or whose object another client deletes each time."""

from kube.apply import ForeignOwner
from kube.contests import DeletedEachTime
from kube.taken_names import TakenNames
from member.outcome import CONTESTED, Refused, Waiting

FOREIGN_OWNER = "ForeignOwner"

NOT_OURS = (ForeignOwner, DeletedEachTime)


def of_others(error: ForeignOwner | DeletedEachTime) -> Waiting | Refused:
    """The wait or refusal: for a taken name until that object changes, for a contested one until a pause is over."""
    if isinstance(error, DeletedEachTime):
        return Waiting(CONTESTED, str(error), error.look_again)
    if error.is_former:
        return Waiting(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)
    return Refused(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)
