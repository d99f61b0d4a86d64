"""When pods are restarted though those in them do not report how they are (lifecycle.md 6.1 step 11)."""

from member import labels
from member.context import ClusterContext
from member.evidence import Evidence, unobservable
from member.observed.activity import Activity, cached_activity
from member.observed.pods import pods_of
from member.outcome import Done, Refused


def forced(ctx: ClusterContext, component: str, *, alone: bool) -> Evidence | None:
    """Evidence that a component does not report its members, where its pods are restarted all the same.

    The user asks for that by annotation; a member that is `alone` has no quorum to lose. It is left to serve while
    certificates are missing or of no use, which may be why it cannot be asked, and its new pod needs them, and while
    its node is cut off, behind which it may serve.
    """
    if ctx.tc.metadata.annotations.get(labels.FORCE_UPGRADE) == "true":
        return unobservable(ctx, component)
    lacks_certificates = isinstance(ctx.outcomes.get("certificates", Done()), Refused)
    if not alone or lacks_certificates:
        return None
    found = (cached_activity(ctx, component, pod) for pod in pods_of(ctx, component))
    return None if Activity.UNHEARD in found else unobservable(ctx, component)
