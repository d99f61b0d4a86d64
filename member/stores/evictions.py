"""The operator's leader evictions: requests to PD, and the record of evicted stores (F16).

A request may arrive long after it was sent, when the sender no longer leads. So every process that has evicted a store,
or has seen the marks of an eviction, keeps checking that store. Evictions that users request with pd-ctl are theirs.
"""

from collections.abc import Collection

from dataplane.pd import PDClient
from member.actions import EndEviction, EvictLeaders
from member.context import ReconcileContext

_BEGUN = "eviction begun"
_AGAIN = 10.0
"""Seconds until PD is asked again for an eviction that it has agreed to but does not list.

One of its members may contradict the others.
"""


async def begin(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
    """Start moving leaders away from a store. PD may agree without an effect: see `doubt`. Raises DataPlaneError."""
    remember(ctx, store)
    stopwatches, key = ctx.memory.stopwatches, str(store)
    stopwatches.forget(_BEGUN, key)
    await EvictLeaders(pd, store)
    stopwatches.look(_BEGUN, key, ctx.deps.clock)


def has_begun(ctx: ReconcileContext, store: int, listed: Collection[int]) -> bool:
    """True if PD lists the eviction of a store among those `listed`, or has agreed to it lately."""
    stopwatches, key = ctx.memory.stopwatches, str(store)
    if store in listed:
        return True
    return key in stopwatches.known(_BEGUN) and stopwatches.look(_BEGUN, key, ctx.deps.clock).seconds < _AGAIN


def doubt(ctx: ReconcileContext, store: int, listed: Collection[int]) -> str:
    """The end of a sentence about an eviction that PD has agreed to, but does not list; empty for any other.

    It stays until PD lists the eviction, however often the operator requests it.
    """
    has_agreed = str(store) in ctx.memory.stopwatches.known(_BEGUN)
    return "; PD has agreed to this eviction, but does not list it" if has_agreed and store not in listed else ""


async def end(ctx: ReconcileContext, pd: PDClient, store: int, *, confirm: bool = True) -> None:
    """Let leaders return to a store; `confirm` as in `EndEviction`. Raises DataPlaneError."""
    remember(ctx, store)
    ctx.memory.stopwatches.forget(_BEGUN, str(store))
    await EndEviction(pd, store, confirm=confirm)


def remember(ctx: ReconcileContext, store: int) -> None:
    """Record that the operator evicts, or has evicted, this store."""
    ctx.memory.evicted_stores.add(store)
