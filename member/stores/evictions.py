"""The operator's leader evictions: requests to PD, and the record of evicted stores (F16).

A request may arrive long after it was sent, when the sender no longer leads. So every process that has evicted a store,
or has seen the marks of an eviction, keeps checking that store. Evictions that users request with pd-ctl are theirs.
"""

from dataplane.pd import PDClient
from member.actions import EndEviction, EvictLeaders
from member.context import ReconcileContext


async def begin(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Start moving leaders away from a store. Raises DataPlaneError."""
    # PD may agree again and again without an effect
    is_repeated = store in ctx.memory.evicted_stores
    remember(ctx, store)
    await EvictLeaders(pd, store, confirm=is_repeated)


async def end(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Let leaders return to a store. Raises DataPlaneError."""
    remember(ctx, store)
    await EndEviction(pd, store)


def remember(ctx: ReconcileContext, store: int) -> None:
    """Record that the operator evicts, or has evicted, this store."""
    ctx.memory.evicted_stores.add(store)
