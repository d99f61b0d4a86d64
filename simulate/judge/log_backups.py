"""Checks of log backups and of what reads them, by the content of storage and tables.

| Rule | |
|---|---|
| log-unreadable | a log backup is Failed when its grace period without a state is over, and Running with a state |
| restore-order | a replication restore restores its log once, after its snapshot and the end of its CompactBackup |
| restore-content | a Complete replication restore has brought back the tables that the log ended with |
| compact-shards | each shard that a CompactBackup reports as complete has left its result in storage |
| compact-end | in the end each CompactBackup is Complete or Failed |
"""

from collections import Counter
from collections.abc import Iterator

from apis.backup_conditions import LOG_STATE_UNREADABLE
from apis.log_backups import RUNNING, STOPPED
from controllers.backup.unreadable import GRACE
from kube.objects import Json, condition_of
from kube.resources import BACKUPS, COMPACT_BACKUPS, JOBS, RESTORES
from member.backups.naming import LOG_RESTORE, SNAPSHOT_RESTORE, step_job_name
from ports import duration
from sandbox.conditions import holds
from sandbox.controllers.job_indexes import numbers
from sandbox.dataplane.br.compaction import result_of
from sandbox.world import World
from simulate.engine.calls import Call
from simulate.engine.state import State
from simulate.invariants.facts import Found, annotations, name_of, phase_of

_FAILED_AS = "LogBackupStateQueryFailed"
_LATE = 150.0
"""Seconds in which a log backup is read again and its status is written, also by an operator that has just started."""
_ENDS = ("Complete", "Failed")


class LogBackupJudge:
    """Checks one namespace. `unreadable` are the seconds for which PD's keys cannot be read."""

    def __init__(self, world: World, state: State, unreadable: float) -> None:
        self._world = world
        self._state = state
        self._unreadable = unreadable
        self._failed: set[str] = set()
        """The UIDs of log backups that were Failed because their state was unreadable."""
        self._again: set[str] = set()
        """The UIDs of log backups that were Running after that, with a readable state."""
        self._logged: dict[str, str] = {}
        """The digest of all tables when a log backup stopped, by its prefix in the bucket."""
        self._restoring: set[str] = set()
        """The UIDs of Jobs that have begun to restore a log."""
        self._restored: set[str] = set()
        """The UIDs of Restores that have been Complete."""

    def look(self) -> Iterator[Found]:
        """The current violations."""
        for backup in self._state.all(BACKUPS):
            if backup["spec"].get("backupMode") == "log":
                self._note(backup)
        for restore in self._state.all(RESTORES):
            if "replicationConfig" in restore["spec"]:
                yield from self._order(restore)
                yield from self._content(restore)
        for compaction in self._state.all(COMPACT_BACKUPS):
            yield from self._shards(compaction)

    def end(self, done: list[Call]) -> Iterator[Found]:
        """The violations at the end, after these writes of operators."""
        for compaction in self._state.all(COMPACT_BACKUPS):
            if (state := _status(compaction).get("state")) not in _ENDS:
                yield "compact-end", f"CompactBackup {name_of(compaction)} is {state or 'new'} in the end"
        for backup in self._state.all(BACKUPS):
            yield from self._failure(backup)
        made = Counter(call.target.name for call in done if (call.method, call.target.resource) == ("POST", str(JOBS)))
        for restore in self._state.all(RESTORES):
            for step in (SNAPSHOT_RESTORE, LOG_RESTORE):
                if made[job := step_job_name(name_of(restore), step)] > 1:
                    yield "restore-order", f"Job {job} was created {made[job]} times"

    def _note(self, backup: Json) -> None:
        """Note what is true of a log backup at the moment."""
        status = _status(backup)
        if status.get("phase") == STOPPED and _prefix(backup) not in self._logged and self._state.pd is not None:
            self._logged[_prefix(backup)] = self._state.pd.tables.digest()
        conditions, uid = status.get("conditions") or (), backup["metadata"]["uid"]
        stands = status.get("phase"), condition_of(conditions, "Failed").get("reason")
        if stands == ("Failed", _FAILED_AS):
            self._failed.add(uid)
        is_unreadable = condition_of(conditions, LOG_STATE_UNREADABLE).get("status") == "True"
        if stands[0] == RUNNING and not is_unreadable and uid in self._failed:
            self._again.add(uid)

    def _failure(self, backup: Json) -> Iterator[Found]:
        grace, uid = annotations(backup).get(GRACE), backup["metadata"]["uid"]
        if not grace or self._unreadable < duration.seconds(grace) + _LATE:
            return
        if uid not in self._failed:
            yield "log-unreadable", f"{name_of(backup)} was never Failed in {self._unreadable} s without an answer"
        elif uid not in self._again:
            yield "log-unreadable", f"{name_of(backup)} was never Running again"

    def _order(self, restore: Json) -> Iterator[Found]:
        first, second = (
            self._state.get(JOBS, step_job_name(name_of(restore), step)) for step in (SNAPSHOT_RESTORE, LOG_RESTORE)
        )
        if second is None or second["metadata"]["uid"] in self._restoring:
            return
        self._restoring.add(second["metadata"]["uid"])
        if first is None or not holds(first, "Complete"):
            yield "restore-order", f"{name_of(restore)} restores the log before the snapshot is restored"
        compaction = self._state.get(COMPACT_BACKUPS, restore["spec"]["replicationConfig"]["compactBackupName"])
        if compaction is None or _status(compaction).get("state") not in _ENDS:
            yield "restore-order", f"{name_of(restore)} restores the log before its compaction has ended"

    def _content(self, restore: Json) -> Iterator[Found]:
        uid = restore["metadata"]["uid"]
        if phase_of(restore) != "Complete" or uid in self._restored or self._state.pd is None:
            return
        self._restored.add(uid)
        if self._state.pd.tables.digest() != self._logged.get(_prefix(restore)):
            yield "restore-content", f"Restore {name_of(restore)} is Complete with other tables than the log ended with"

    def _shards(self, compaction: Json) -> Iterator[Found]:
        count = compaction["spec"].get("shardCount")
        if not count:
            return
        status = _status(compaction)
        disk = self._world.data_plane.disk(f"s3://{compaction['spec']['s3']['bucket']}")
        complete = set(numbers(status.get("completedIndexes", ""))) | set(_all(status, count))
        for index in sorted(complete):
            name = f"{_prefix(compaction)}/{result_of(index + 1, count)}"
            if name not in disk.objects:
                yield "compact-shards", f"{name_of(compaction)}: shard {index} is complete, and {name} is not there"


def _all(status: Json, count: int) -> range:
    """The shards of a Complete compaction."""
    return range(count if status.get("state") == "Complete" else 0)


def _prefix(tree: Json) -> str:
    return str(tree["spec"]["s3"]["prefix"]).strip("/") if "s3" in tree["spec"] else ""


def _status(tree: Json) -> Json:
    status: Json = tree.get("status") or {}
    return status
