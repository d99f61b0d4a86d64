"""The stage `topology`: TiDB Dashboard is not shown servers that are no more (lifecycle.md 11.5).

A TiDB that is killed leaves its entry in PD's etcd. One that comes back takes it over; one that is not wanted never
does.
"""

from apis.ordinals import desired_ordinals
from dataplane import topology
from dataplane.errors import NotFound
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book
from member.outcome import Done, Outcome, Waiting

_EVERY = 300.0
"""Seconds between two looks; v1.6 looks at each reconcile."""


def act(ctx: ReconcileContext) -> Outcome:
    """Delete the entries of own servers that are not wanted any more. Raises DataPlaneError, LeaseExpired."""
    tc = ctx.tc
    if tc.spec.tidb is None or tc.spec.paused or (tc.spec.pd is not None and not ctx.status.pd.synced):
        return Done()
    if _others_wait_for_pd(ctx) or not ctx.memory.stopwatches.is_due("topology", "tidb", _EVERY, ctx.deps.clock):
        return Done()
    etcd, book, wanted = api_clients.etcd(ctx), address_book(tc), desired_ordinals(tc, "tidb")
    try:
        for server in topology.left_behind(etcd):
            ordinal = book.ordinal_of("tidb", server)
            if ordinal is not None and ordinal not in wanted:
                topology.forget(etcd, server)
    except NotFound:
        return Done("PD serves no etcd by HTTP: its configuration has enable-grpc-gateway off")
    return Done()


def _others_wait_for_pd(ctx: ReconcileContext) -> bool:
    """Whether PD is slow and something is under way, which entries that are left behind should not delay."""
    return bool(ctx.deps.dataplane.slow) and any(isinstance(each, Waiting) for each in ctx.outcomes.values())
