"""TiDB: starts when a TiKV store is Up (lifecycle.md 6.7)."""

from collections.abc import Mapping

from apis import predicates
from apis.pod_commands import REPLACE_VOLUME, TIDB_GRACEFUL_SHUTDOWN
from member import api_clients
from member.actions import SetServerLabels
from member.context import ReconcileContext
from member.lifecycle.workload import Workload
from member.naming import tidb_server_secret
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.tidb import commands, desired, failover, password, rolling
from member.tidb.status import observe


async def _gate(ctx: ReconcileContext) -> Waiting | None:
    if ctx.tc.spec.recovery_mode:
        return Waiting("WaitingForRestore", "recovery mode: TiDB is not started until spec.recoveryMode is false")
    return _missing_pump(ctx) or _missing_certificate(ctx)


def _missing_pump(ctx: ReconcileContext) -> Waiting | None:
    """The wait for a Pump: a TiDB that should write binlogs ends at once without one (3.1)."""
    spec = ctx.tc.spec
    if spec.pump is None or spec.tidb is None or not spec.tidb.binlog_enabled or any(ctx.status.pump.health):
        return None
    what = "TiDB is to write binlogs, and no Pump node is online"
    way_out = "set spec.pump.replicas to 1 or more, or spec.tidb.binlogEnabled to false"
    return Waiting("WaitingForPump", f"{what}; {way_out}", next_poll(ctx, "tidb"))


def _missing_certificate(ctx: ReconcileContext) -> Waiting | None:
    """The wait for a certificate: a pod that mounts a missing Secret never starts (objects.md 1.4)."""
    tidb = ctx.tc.spec.tidb
    if tidb is None or not tidb.tls_client or not tidb.tls_client.enabled or ctx.stateful_set("tidb"):
        return None
    name = tidb_server_secret(ctx.tc)
    secret = ctx.secret(name)
    data = (secret.decode().get("data") if secret else None) or {}
    if missing := [key for key in ("tls.crt", "tls.key") if not data.get(key)]:
        what = f"spec.tidb.tlsClient.enabled requires Secret {name} with {' and '.join(missing)}"
        return Waiting("MissingSecret", what, next_poll(ctx, "tidb"))
    return None


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.tidb.members
    if predicates.all_members_ready(ctx.tc, "tidb"):
        return Done(f"{len(members)} of {len(members)} servers are healthy")
    ill = ", ".join(name for name, member in members.items() if not member.health)
    return Waiting("TiDBUnhealthy", f"waiting for {ill or 'all servers'} to be healthy", next_poll(ctx, "tidb"))


def _locate(ctx: ReconcileContext, pod: str, labels: Mapping[str, str]) -> SetServerLabels:
    return SetServerLabels(api_clients.tidb(ctx, pod), labels)


TIDB = Workload(
    name="tidb",
    observe=observe,
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    rolling=rolling.ROLLING,
    failover=failover.failover,
    locate=_locate,
    housekeeping=password.act,
    commands={REPLACE_VOLUME: commands.replace_volume, TIDB_GRACEFUL_SHUTDOWN: commands.graceful_shutdown},
)
