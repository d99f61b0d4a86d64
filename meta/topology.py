"""The stage `topology`: removes servers that no longer exist from TiDB Dashboard (lifecycle.md 11.5).

A killed TiDB leaves its entry in PD's etcd. If it restarts, it takes the entry over; if it was scaled in, the entry
would stay.
"""

from apis.ordinals import desired_ordinals
from dataplane import topology
from dataplane.errors import NotFound
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book
from member.outcome import Done, Outcome, Waiting

_EVERY = 300.0
"""Seconds between two checks; v1.6 checks in every reconcile."""


def act(ctx: ReconcileContext) -> Outcome:
    """Delete the entries of this cluster's undesired servers. Raises DataPlaneError, LeaseExpired."""
    tc = ctx.tc
    if tc.spec.tidb is None or tc.spec.paused or (tc.spec.pd is not None and not ctx.status.pd.synced):
        return Done()
    if _others_wait_for_pd(ctx) or not ctx.memory.stopwatches.is_due("topology", "tidb", _EVERY, ctx.deps.clock):
        return Done()
    etcd, book, wanted = api_clients.etcd(ctx), address_book(tc), desired_ordinals(tc, "tidb")
    try:
        for server in topology.stale_servers(etcd):
            ordinal = book.ordinal_of("tidb", server)
            if ordinal is not None and ordinal not in wanted:
                topology.forget(etcd, server)
    except NotFound:
        return Done("PD serves no etcd by HTTP: its configuration has enable-grpc-gateway off")
    return Done()


def _others_wait_for_pd(ctx: ReconcileContext) -> bool:
    """True if PD is slow and other work is in progress, which this clean-up must not delay."""
    return bool(ctx.deps.dataplane.slow) and any(isinstance(outcome, Waiting) for outcome in ctx.outcomes.values())
