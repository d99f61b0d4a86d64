"""What PD reports of TiKV's stores, asked live: whose they are, and which do not serve."""

from collections.abc import Sequence
from typing import TypeVar

from dataplane.pd import UP, Store
from member import ownership
from member.context import ReconcileContext

_S = TypeVar("_S", bound=Store)


def own_stores(ctx: ReconcileContext, stores: Sequence[_S], ordinal: int) -> list[_S]:
    """The stores of a pod. Raises AddressNotUnderstood when some store may be its, or another's."""
    ownership.require_understood_stores(ctx.tc, "tikv", stores)
    return ownership.own_stores(ctx.tc, stores, "tikv", ordinal)


def not_up(ctx: ReconcileContext, stores: Sequence[Store], besides: int) -> str:
    """The stores, TiFlash's and peers' too, that PD does not call Up (F13), in words; empty when there are none.

    Those that failover has given up do not count.
    """
    given_up = {record.store_id for record in ctx.status.tikv.failure_stores.values()}
    return ", ".join(
        f"store {store.id} ({store.address}) is {store.state_name if store.complete else 'unknown'}"
        for store in stores
        if store.id != besides and str(store.id) not in given_up and not is_up(store)
    )


def is_up(store: Store) -> bool:
    """Whether PD says, in a whole answer, that a store serves."""
    return store.complete and store.state_name == UP
