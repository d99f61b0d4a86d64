"""The one door for destruction: what goes was seen live, and so was why it may go (design.md 3.6, F1, F5, O5).

Nothing else in the operator deletes an object of Kubernetes, a member of PD or a store. StatefulSets get smaller by
`member.apply.stateful_set`.
"""

from dataplane.pd import LiveMember, LiveStore, PDClient
from kube.deletion import Destroyer, LiveObject
from member.context import ReconcileContext
from member.evidence import Evidence


def delete(
    ctx: ReconcileContext,
    seen: LiveObject,
    why: Evidence,
    *,
    propagation: str = "",
    grace_period_seconds: int | None = None,
) -> None:
    """Delete an object in the version that was seen. Already gone is success.

    Raises Conflict when it changed since, other ApiErrors, TransportError, LeaseExpired; TypeError for what was not
    seen live.
    """
    _require(why)
    destroyer = Destroyer(ctx.deps.client)
    destroyer.delete(seen, propagation=propagation, grace_period_seconds=grace_period_seconds)


def delete_member(pd: PDClient, seen: LiveMember, why: Evidence) -> None:
    """Remove a member from PD. Raises Conflict when PD refuses, other DataPlaneErrors, LeaseExpired, TypeError."""
    _require(why)
    pd.delete_member(seen)


def delete_store(pd: PDClient, seen: LiveStore, why: Evidence) -> None:
    """Let PD move a store's data away. Raises as `delete_member`."""
    _require(why)
    pd.delete_store(seen)


def _require(why: Evidence) -> None:
    if not isinstance(why, Evidence):
        raise TypeError(f"what is deleted takes evidence that it may go, from member.evidence, not {why!r}")
