"""What the fields of a status are worth, the same for all kinds of this operator."""

from controllers.status_pacing import StatusFields
from member.observed.status import NORMAL

STATUS_FIELDS = StatusFields(
    details=frozenset({"statefulSet", "volumes", "leader", "leaderCount", "synced", "image"}),
    records=("failureMembers", "failureStores"),
    resting=NORMAL,
)
