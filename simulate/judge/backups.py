"""Checks of Backups and Restores against the content of storage and tables, whatever their statuses.

| Rule | |
|---|---|
| backup-files | a Complete Backup that is not being deleted has `backupmeta` and every file that it lists, whole |
| backup-in-use | files that a Restore reads stay until it has ended |
| backup-twice | at most one pod works for a Backup or Restore |
| backup-outcome | a Complete or Failed one stays so |
| backup-jobs | no more Jobs than the retries in the spec |
| backup-end | in the end each Backup and Restore is Complete, Failed or Stopped, and no deletion hangs |
| restore-content | a Complete Restore has written the content of the files |
"""

from collections import Counter
from collections.abc import Iterator

from apis.backups import Backup
from apis.decoding import decode
from apis.restores import Restore
from kube.objects import Json
from kube.resources import BACKUPS, JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, RESTORES
from sandbox.dataplane.br import meta
from sandbox.dataplane.processes import Disk
from sandbox.dataplane.tables import Table
from sandbox.world import World
from simulate.engine.calls import Call
from simulate.engine.state import State
from simulate.invariants.facts import Found, name_of, phase_of
from simulate.judge.log_backups import LogBackupJudge

_ENDS = ("Complete", "Failed")
_PRUNES = ("PruneScheduled", "PruneRunning", "PruneComplete", "PruneFailed")
_RESTS = (*_ENDS, *_PRUNES, "Clean", "Invalid", "Stopped")


class BackupJudge:
    """Checks one namespace."""

    def __init__(self, world: World, state: State, unreadable: float = 0.0) -> None:
        """`unreadable` are the seconds for which PD's keys cannot be read."""
        self._world = world
        self._state = state
        self._logs = LogBackupJudge(world, state, unreadable)
        self._ended: dict[str, str] = {}
        """The outcomes of Backups and Restores, by UID."""

    def look(self) -> Iterator[Found]:
        """The current violations."""
        backups, restores = self._state.all(BACKUPS), self._state.all(RESTORES)
        if not backups and not restores:
            return
        yield from self._logs.look()
        for backup in backups:
            if (
                phase_of(backup) == "Complete"
                and "deletionTimestamp" not in backup["metadata"]
                and (what := self._lacks(backup))
            ):
                yield "backup-files", f"Backup {name_of(backup)} is Complete, but {what}"
        for restore in restores:
            is_under_way = phase_of(restore) in ("Scheduled", "Running")
            if is_under_way and self._has_begun(restore) and (what := self._lacks(restore)):
                yield "backup-in-use", f"Restore {name_of(restore)} reads files, but {what}"
            is_of_backup = restore["spec"].get("restoreMode") != "pitr"
            if (
                is_of_backup
                and phase_of(restore) == "Complete"
                and self._ended.get(restore["metadata"]["uid"]) != "Complete"
            ):
                yield from self._differs(restore)
        for each in (*backups, *restores):
            yield from self._outcome(each)
            if (count := self._pods(each)) > 1:
                yield "backup-twice", f"{count} pods work for {each['kind']} {name_of(each)}"

    def end(self, done: list[Call]) -> Iterator[Found]:
        """The violations at the end, after these writes of operators."""
        yield from self.look()
        yield from self._logs.end(done)
        for each in (*self._state.all(BACKUPS), *self._state.all(RESTORES)):
            phase = phase_of(each)
            if "deletionTimestamp" in each["metadata"] or phase not in _RESTS:
                yield "backup-end", f"{each['kind']} {name_of(each)} is {phase or 'new'} in the end"
        made = Counter(call.target.name for call in done if (call.method, call.target.resource) == ("POST", str(JOBS)))
        for each in (*self._state.all(BACKUPS), *self._state.all(RESTORES)):
            job = f"{str(each['kind']).lower()}-{name_of(each)}"
            if made[job] > _jobs_of(each):
                yield "backup-jobs", f"Job {job} was made {made[job]} times"

    def _outcome(self, tree: Json) -> Iterator[Found]:
        uid, phase = tree["metadata"]["uid"], phase_of(tree)
        before = self._ended.get(uid, "")
        if before and phase in _ENDS and phase != before:
            yield "backup-outcome", f"{tree['kind']} {name_of(tree)} was {before}, and is {phase}"
        if phase in _ENDS:
            self._ended.setdefault(uid, phase)

    def _pods(self, tree: Json) -> int:
        label = f"tidb.pingcap.com/{str(tree['kind']).lower()}"
        pods = [
            pod for pod in self._state.all(PODS) if (pod["metadata"].get("labels") or {}).get(label) == name_of(tree)
        ]
        return sum(bool(self._world.data_plane.running(pod["metadata"]["namespace"], name_of(pod))) for pod in pods)

    def _has_begun(self, restore: Json) -> bool:
        """True if its files existed at the first check; otherwise it reads nothing."""
        uid = f"begun {restore['metadata']['uid']}"
        if uid not in self._ended:
            self._ended[uid] = "" if self._lacks(restore) else "yes"
        return bool(self._ended[uid])

    def _lacks(self, tree: Json) -> str:
        """The missing files of a Backup, or of those that a Restore reads; empty for a whole backup."""
        disk, prefix = self._place(tree)
        content = disk.objects.get(f"{prefix}/{meta.NAME}")
        if content is None:
            return f"{prefix}/{meta.NAME} is not there"
        try:
            saved = meta.decode(content)
        except ValueError as error:
            return f"{prefix}/{meta.NAME} is broken: {error}"
        for file in saved.files:
            there = disk.objects.get(f"{prefix}/{file.name}", b"")
            if (len(there), meta.sha256(there)) != (file.size, file.sha256):
                return f"{prefix}/{file.name} is not whole"
        return ""

    def _differs(self, restore: Json) -> Iterator[Found]:
        disk, prefix = self._place(restore)
        content, pd = disk.objects.get(f"{prefix}/{meta.NAME}"), self._state.pd
        if content is None or pd is None:
            return
        saved = meta.decode(content)
        there = {(each.schema, each.name): each for each in pd.tables.tables()}
        for table in saved.tables:
            found = there.get((table.schema, table.name))
            files = [file for file in saved.files if file.table == table.id]
            wanted = [pair for file in files for pair in meta.unpack(disk.objects.get(f"{prefix}/{file.name}", b""))]
            if found is None or _rows(table, wanted) != _rows(found, list(pd.tables.content.scan(found.keys))):
                yield "restore-content", f"Restore {name_of(restore)} is Complete without all of {table.name}"

    def _place(self, tree: Json) -> tuple[Disk, str]:
        spec = decode(tree, Restore).spec
        data_plane = self._world.data_plane
        if spec.s3 is not None:
            return data_plane.disk(f"s3://{spec.s3.bucket}"), spec.s3.prefix.strip("/")
        assert spec.local is not None
        name = spec.local.volume["persistentVolumeClaim"]["claimName"]
        claim = self._state.get(PERSISTENT_VOLUME_CLAIMS, name)
        return data_plane.disk(claim["metadata"]["uid"] if claim else ""), spec.local.prefix.strip("/")


def _jobs_of(tree: Json) -> int:
    """How often its Job may be created: once, plus the retries of a Backup."""
    if tree["kind"] != BACKUPS.kind:
        return 1
    return 1 + decode(tree, Backup).spec.backoff_retry_policy.max_retry_times


def _rows(table: Table, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Keys without the table's own prefix."""
    skip = len(table.keys.start)
    return [(key[skip:], value) for key, value in pairs]
