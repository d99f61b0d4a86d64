"""The classification of status fields, the same for all kinds of clusters."""

from controllers.status_pacing import StatusFields
from member.observed.status import NORMAL

STATUS_FIELDS = StatusFields(
    details=frozenset({"statefulSet", "volumes", "leader", "leaderCount", "synced", "image"}),
    records=("failureMembers", "failureStores"),
    resting=NORMAL,
)
