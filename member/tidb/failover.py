"""Replacing TiDB servers that are lost (lifecycle.md 9.4).

recorded → one more pod is wanted at once → the record goes, and the extra pod with it, when the server answers again.
A pod that can't be scheduled is not replaced: another one would fare no better.
"""

from apis.tidbcluster import TiDBFailureMember
from kube.objects import Object
from member.failover import (
    RECOVERY,
    UNHEALTHY,
    limit,
    limit_reached,
    serving_instead,
    still_waiting,
    substitutes,
    tell,
    to_record,
    told_to_clear,
    uncounted,
)
from member.outcome import Done, Outcome, Waiting
from member.pods import Pod, pods_of
from member.round import Round
from member.status import stamp
from member.witnesses import Failing, desired_pods, failing, is_cut_off


def failover(round_: Round) -> Outcome:
    """Replace what is lost. Raises ApiError, TransportError, OwnerGone."""
    tidb = round_.status.tidb
    if told_to_clear(round_, "tidb", bool(tidb.failure_members)):
        tidb.failure_members = {}
    _drop_recovered(round_)
    spec, period = round_.tc.spec.tidb, round_.settings.failover.tidb_period
    recorded = {record.pod_name for record in tidb.failure_members.values()}
    lost = [each for each in failing(round_, "tidb", _ill(round_)) if each.pod not in recorded]
    most = limit(round_, spec.max_failover_count if spec else 0)
    if not lost:
        return _serving_instead(round_)
    if not most or is_cut_off(round_):
        return Done()
    if new := to_record(lost, len(recorded), most, period):
        return _record(round_, new[0])
    if over := to_record(lost, 0, len(lost), period):
        return limit_reached(round_, "tidb", len(recorded), over[0])
    return still_waiting(round_, "tidb", "TiDBMemberUnhealthy", lost, period)


def excused(round_: Round) -> set[str]:
    """The pods that nobody counts on: lost ones that are recorded and replaced, and substitutes without a node."""
    records = round_.status.tidb.failure_members
    if not records:
        return set()
    placed = {pod.metadata.name for pod in pods_of(round_, "tidb") if _is_scheduled(pod)}
    return uncounted(round_, "tidb", {record.pod_name for record in records.values()}, placed)


def _ill(round_: Round) -> dict[str, str]:
    """The servers that don't answer though their pods have a node."""
    members = round_.status.tidb.members
    if all(member.health for member in members.values()):
        return {}
    placed = {pod.metadata.name for pod in pods_of(round_, "tidb") if _is_scheduled(pod)}
    return {name: name for name, member in members.items() if not member.health and name in placed}


def _record(round_: Round, lost: Failing) -> Waiting:
    """One a round."""
    now = stamp(round_.doors.clock.wall())
    record = TiDBFailureMember(pod_name=lost.pod, created_at=now)
    round_.status.tidb.failure_members = round_.status.tidb.failure_members | {lost.key: record}
    what = f"{lost.pod} has not answered since {stamp(lost.since)}: it is replaced"
    tell(round_, UNHEALTHY, what)
    return Waiting("TiDBFailover", f"{lost.pod} is lost; another pod is started in its place")


def _serving_instead(round_: Round) -> Outcome:
    tidb = round_.status.tidb
    if not all(pod in tidb.members and tidb.members[pod].health for pod in substitutes(round_, "tidb")):
        return Done()
    lost = [record.pod_name for record in tidb.failure_members.values()]
    return serving_instead(round_, "tidb", "TiDBFailedOver", lost, "the extra pod goes when it answers again")


def _drop_recovered(round_: Round) -> None:
    """A record ends with the trouble, or with the wish for the pod (9.4, F33)."""
    tidb, wanted = round_.status.tidb, set(desired_pods(round_, "tidb"))
    well = {name for name, member in tidb.members.items() if member.health}
    back = [key for key, record in tidb.failure_members.items() if record.pod_name in well]
    if back:
        tell(round_, RECOVERY, f"{', '.join(back)} answers again", is_warning=False)
    tidb.failure_members = {
        key: record
        for key, record in tidb.failure_members.items()
        if record.pod_name in wanted and record.pod_name not in well
    }


def _is_scheduled(pod: Object) -> bool:
    return bool(pod.decode_as(Pod).spec.node_name)
