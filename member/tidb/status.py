"""What TiDB is like right now (lifecycle.md 5.5). Reads only."""

from collections.abc import Mapping
from datetime import datetime

from apis import predicates
from apis.ordinals import ordinals
from apis.tidbcluster import TiDBMember
from dataplane.calls import TIMEOUT
from dataplane.errors import BadTlsMaterial
from member import reach
from member.naming import pod_name
from member.outcome import Done, Failed, Outcome
from member.pods import Pod
from member.round import Round
from member.status import observe_pods, transition_time
from member.tidb.failover import excused

_BUDGET = 10.0
"""Seconds for asking all servers in a round, shared by those still to be asked (F53)."""

_SHORTEST = 0.1


def observe(round_: Round) -> Outcome:
    """Bring `status.tidb` up to date. A server without a running pod is not asked: it can't be healthy."""
    if round_.tc.spec.tidb is None:
        return Done()
    status = round_.status.tidb
    pods = observe_pods(round_, "tidb", status, excused(round_))
    if pods is None:
        status.members = {}
        return Done()
    names = [
        pod_name(round_.tc, "tidb", ordinal) for ordinal in ordinals(predicates.actual_replicas(round_.tc, "tidb"))
    ]
    try:
        status.members = _members(round_, names, {pod.metadata.name: pod.decode_as(Pod) for pod in pods})
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    return Done()


def _members(round_: Round, names: list[str], pods: Mapping[str, Pod]) -> dict[str, TiDBMember]:
    """Every server as it is now. Those that answered last time are asked first and leave their share to the others."""
    clock, before = round_.doors.clock, round_.status.tidb.members
    deadline = clock.now() + _BUDGET
    found: dict[str, TiDBMember] = {}
    for name in sorted(names, key=lambda name: name not in before or not before[name].health):
        pod = pods.get(name)
        share = max(deadline - clock.now(), 0.0) / (len(names) - len(found))
        health = pod is not None and pod.status.phase == "Running" and _answers(round_, name, share)
        found[name] = _member(name, health, pod, before.get(name), clock.wall())
    return {name: found[name] for name in names}


def _answers(round_: Round, name: str, share: float) -> bool:
    return reach.tidb(round_, name).healthy(min(max(share, _SHORTEST), TIMEOUT))


def _member(name: str, health: bool, pod: Pod | None, old: TiDBMember | None, now: datetime) -> TiDBMember:
    node = pod.spec.node_name if pod else ""
    return TiDBMember(
        name=name,
        health=health,
        node=node or (old.node if old else ""),
        last_transition_time=transition_time(old, old is not None and old.health == health, now),
    )
