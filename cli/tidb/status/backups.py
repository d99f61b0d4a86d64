"""Backups and schedules of a cluster, for `status`. Pure."""

from collections.abc import Iterable, Iterator

from apis.cluster import WITHOUT_EFFECT
from apis.shared import Json
from cli.tidb.status.report import Backup, Backups, Schedule
from kube.objects import condition_of

_COMPLETE = "Complete"
_WAITING = "Waiting"
_LOG = "log"


def backups_of(namespace: str, cluster: str, backups: Iterable[Json], schedules: Iterable[Json]) -> Backups:
    """The Backups of this cluster, by BR or through its TiDB."""
    made = [_backup(backup) for backup in backups if _is_of(backup["spec"], namespace, cluster)]
    good = [backup for backup in made if backup.mode != _LOG and backup.phase == _COMPLETE]
    last = max(good, key=lambda each: each.completed, default=None)
    others = sorted((backup for backup in made if backup not in good), key=lambda each: each.started)
    mine = (
        schedule
        for schedule in schedules
        if _is_of(schedule["spec"]["backupTemplate"] | _own_br(schedule), namespace, cluster)
    )
    return Backups(last, others, sorted(map(_schedule, mine), key=lambda each: each.name))


def without_effect(namespace: str, cluster: str, backups: Iterable[Json], schedules: Iterable[Json]) -> Iterator[str]:
    """One sentence for each Backup and schedule of this cluster that has settings without effect."""
    mine = [("Backup", backup) for backup in backups if _is_of(backup["spec"], namespace, cluster)]
    own = (
        schedule
        for schedule in schedules
        if _is_of(schedule["spec"]["backupTemplate"] | _own_br(schedule), namespace, cluster)
    )
    mine += (("BackupSchedule", each) for each in own)
    for kind, each in mine:
        for condition in (each.get("status") or {}).get("conditions") or ():
            if condition.get("type") in WITHOUT_EFFECT and condition.get("status") == "True":
                yield f"{kind} {each['metadata']['name']}: {condition.get('message')}"


def _own_br(schedule: Json) -> Json:
    """The schedule's own `br`, which replaces its template's."""
    br = schedule["spec"].get("br")
    return {"br": br} if br and not schedule["spec"]["backupTemplate"].get("br") else {}


def _is_of(spec: Json, namespace: str, cluster: str) -> bool:
    if br := spec.get("br"):
        return bool(br.get("cluster") == cluster and br.get("clusterNamespace") in (None, "", namespace))
    host = str((spec.get("from") or {}).get("host") or "")
    name, _, rest = host.partition(".")
    return name == f"{cluster}-tidb" and rest.partition(".")[0] in ("", namespace)


def _backup(tree: Json) -> Backup:
    status = tree.get("status") or {}
    phase, conditions = str(status.get("phase") or ""), status.get("conditions") or ()
    waits = condition_of(conditions, _WAITING)
    condition = waits if waits.get("status") == "True" else condition_of(conditions, phase)
    return Backup(
        name=tree["metadata"]["name"],
        mode=str(tree["spec"].get("backupMode") or "snapshot"),
        phase=phase,
        message=str(condition.get("message") or ""),
        started=str(status.get("timeStarted") or ""),
        completed=str(status.get("timeCompleted") or ""),
        size=str(status.get("backupSizeReadable") or ""),
        commit_ts=str(status.get("commitTs") or ""),
        checkpoint_ts=str(status.get("logCheckpointTs") or ""),
    )


def _schedule(tree: Json) -> Schedule:
    status = tree.get("status") or {}
    active = condition_of(status.get("conditions") or (), "Active")
    return Schedule(
        name=tree["metadata"]["name"],
        schedule=str(tree["spec"]["schedule"]),
        active=active.get("status") == "True",
        message=str(active.get("message") or "the operator has not looked at it yet"),
        last_backup=str(status.get("lastBackup") or ""),
        last_backup_time=str(status.get("lastBackupTime") or ""),
    )


def shown_backups(backups: Backups) -> Iterator[Backup]:
    """The last successful one, then the others."""
    if backups.last_good:
        yield backups.last_good
    yield from backups.others
