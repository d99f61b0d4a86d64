"""TiDB: starts when a TiKV store is Up (lifecycle.md 6.7)."""

from apis import predicates
from apis.tidbcluster import TidbCluster
from kube.errors import NotFound
from kube.resources import SECRETS
from member import sync
from member.naming import tidb_server_secret
from member.outcome import Done, Outcome, Waiting
from member.polling import next_look
from member.proofs import spec_confirmed
from member.round import Round
from member.scale_out import ScaleOut
from member.scaling import Scaling
from member.tidb import desired, failover, scale_in, upgrade
from member.tidb.status import observe

__all__ = ["act", "observe"]


def act(round_: Round) -> Outcome:
    """Bring TiDB a step closer to its spec."""
    return sync.act(round_, _TIDB)


def _gate(round_: Round) -> Waiting | None:
    spec = round_.tc.spec
    if spec.tikv and not predicates.tikv_is_available(round_.tc):
        return Waiting("WaitingForTiKV", "no TiKV store is Up yet")
    if spec.recovery_mode:
        return Waiting("WaitingForRestore", "recovery mode: TiDB starts when spec.recoveryMode is false again")
    return _missing_certificate(round_)


def _missing_certificate(round_: Round) -> Waiting | None:
    """A pod that mounts a Secret which does not exist never starts: better not to make it (objects.md 1.4)."""
    tidb = round_.tc.spec.tidb
    if tidb is None or not tidb.tls_client or not tidb.tls_client.enabled or round_.stateful_set("tidb"):
        return None
    name = tidb_server_secret(round_.tc)
    try:
        data = round_.doors.client.get(SECRETS, name, round_.namespace).decode().get("data") or {}
    except NotFound:
        data = {}
    if missing := [key for key in ("tls.crt", "tls.key") if not data.get(key)]:
        what = f"spec.tidb.tlsClient.enabled needs Secret {name} with {' and '.join(missing)}"
        return Waiting("MissingSecret", what, next_look(round_, "tidb"))
    return None


def _serving(round_: Round) -> Outcome:
    members = round_.status.tidb.members
    if predicates.tidb_all_members_ready(round_.tc):
        return Done(f"{len(members)} of {len(members)} servers are healthy")
    ill = ", ".join(name for name, member in members.items() if not member.health)
    return Waiting("TiDBUnhealthy", f"waiting until {ill or 'the servers'} can serve", next_look(round_, "tidb"))


def _limit(tc: TidbCluster) -> int:
    policy = tc.spec.tidb.scale_policy if tc.spec.tidb else None
    return (policy.scale_out_parallelism if policy else None) or 1


# TiDB keeps no data: a volume that is there holds logs at most
_OUT = ScaleOut(
    limit=_limit,
    allowed=lambda _: None,
    is_member=lambda _round, _pod: True,
    unused=lambda round_, _: spec_confirmed(round_),
)

_TIDB = sync.Member(
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
