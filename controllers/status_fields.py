"""The classification of status fields, the same for all kinds of clusters."""

from controllers.status_pacing import StatusFields
from member.observed.status import NORMAL

STATUS_FIELDS = StatusFields(
    details=frozenset({"statefulSet", "volumes", "leader", "leaderCount", "synced", "image"}),
    # of a store: all stages run after the observation of every store, and read it from the same status
    acted_on=("state", "lastTransitionTime"),
    records=("failureMembers", "failureStores"),
    resting=NORMAL,
)
