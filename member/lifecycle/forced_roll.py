"""When pods are restarted though those in them do not report how they are (lifecycle.md 6.1 step 11)."""

from member import labels
from member.context import ClusterContext
from member.evidence import Evidence, unobservable
from member.outcome import Done, Refused


def forced(ctx: ClusterContext, component: str, *, alone: bool) -> Evidence | None:
    """Evidence that a component does not report its members, where its pods are restarted all the same.

    That is so where the user has said so by annotation, and where a member is `alone`. One that is alone is left to
    serve while certificates are missing or of no use: that may be why nobody can ask it, and its new pod needs them.
    """
    if ctx.tc.metadata.annotations.get(labels.FORCE_UPGRADE) == "true":
        return unobservable(ctx, component)
    lacks_certificates = isinstance(ctx.outcomes.get("certificates", Done()), Refused)
    return unobservable(ctx, component) if alone and not lacks_certificates else None
