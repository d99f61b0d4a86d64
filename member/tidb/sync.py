"""TiDB: starts when a TiKV store is Up (lifecycle.md 6.7)."""

from apis import predicates
from apis.tidbcluster import TidbCluster
from kube.errors import NotFound
from kube.resources import SECRETS
from member.context import ReconcileContext
from member.evidence import spec_confirmed
from member.lifecycle import component_sync
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.scaling import Scaling
from member.naming import tidb_server_secret
from member.outcome import Done, Outcome, Waiting
from member.polling import next_look
from member.tidb import desired, failover, scale_in, upgrade
from member.tidb.status import observe

__all__ = ["act", "observe"]


def act(ctx: ReconcileContext) -> Outcome:
    """Bring TiDB a step closer to its spec."""
    return component_sync.act(ctx, _TIDB)


def _gate(ctx: ReconcileContext) -> Waiting | None:
    spec = ctx.tc.spec
    if spec.tikv and not predicates.tikv_is_available(ctx.tc):
        return Waiting("WaitingForTiKV", "no TiKV store is Up yet")
    if spec.recovery_mode:
        return Waiting("WaitingForRestore", "recovery mode: TiDB starts when spec.recoveryMode is false again")
    return _missing_certificate(ctx)


def _missing_certificate(ctx: ReconcileContext) -> Waiting | None:
    """A pod that mounts a Secret which does not exist never starts: better not to make it (objects.md 1.4)."""
    tidb = ctx.tc.spec.tidb
    if tidb is None or not tidb.tls_client or not tidb.tls_client.enabled or ctx.stateful_set("tidb"):
        return None
    name = tidb_server_secret(ctx.tc)
    try:
        data = ctx.deps.client.get(SECRETS, name, ctx.namespace).decode().get("data") or {}
    except NotFound:
        data = {}
    if missing := [key for key in ("tls.crt", "tls.key") if not data.get(key)]:
        what = f"spec.tidb.tlsClient.enabled needs Secret {name} with {' and '.join(missing)}"
        return Waiting("MissingSecret", what, next_look(ctx, "tidb"))
    return None


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.tidb.members
    if predicates.tidb_all_members_ready(ctx.tc):
        return Done(f"{len(members)} of {len(members)} servers are healthy")
    ill = ", ".join(name for name, member in members.items() if not member.health)
    return Waiting("TiDBUnhealthy", f"waiting until {ill or 'the servers'} can serve", next_look(ctx, "tidb"))


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tidb.scale_policy if tc.spec.tidb else None
    return (policy.scale_out_parallelism if policy else None) or 1


# TiDB keeps no data: a volume that is there holds logs at most
_OUT = ScaleOut(
    limit=_limit,
    allowed=lambda _: None,
    is_member=lambda _round, _pod: True,
    unused=lambda ctx, _: spec_confirmed(ctx),
)

_TIDB = component_sync.Member(
    name="tidb",
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scale_in.SCALE_IN),
    rolling=upgrade.ROLLING,
    failover=failover.failover,
)
