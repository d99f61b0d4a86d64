"""Leader evictions of stores that are ours: what PD is asked for, and what of it is remembered (F16).

A request may arrive long after it was sent, when the process that has sent it leads no more. So who has evicted a
store, or has seen the marks of that, goes on looking at it. What others evict, with pd-ctl, is theirs.
"""

from dataplane.pd import PDClient
from member.context import ReconcileContext


def begin(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Have the leaders of a store move away. Raises DataPlaneError."""
    remember(ctx, store)
    pd.begin_evict_leaders(store)


def end(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Let the leaders of a store come back. Raises DataPlaneError."""
    remember(ctx, store)
    pd.end_evict_leaders(store)


def end_of_tombstone(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Remove what is left of the eviction of a store that PD lists as Tombstone. Raises DataPlaneError."""
    remember(ctx, store)
    pd.end_evict_leaders(store, confirm=False)


def remember(ctx: ReconcileContext, store: int) -> None:
    """Note that a store is, or was, evicted for us."""
    ctx.memory.evicted_stores.add(store)
