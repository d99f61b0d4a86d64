"""Names and labels of the objects of Backups and Restores (backup.md 1.2).

`family` is `backup` or `restore`, which is a part of names and labels.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from apis.backup_shared import TiDBAccessConfig
from apis.identity import INSTANCE_LABEL
from apis.shared import Json, Metadata
from member.labels import COMPONENT, INSTANCE, MANAGED_BY, NAME, TIDB_OPERATOR

BACKUP = "backup"
RESTORE = "restore"
COMPACTION = "compact-backup"
"""The family of sharded compactions; v1.6 counts the others among the Backups."""
FINALIZER = "tidb.pingcap.com/backup-protection"
SERVICE_ACCOUNT = "tidb-backup-manager"
"""The service account of the pods, which the user creates (8)."""
SNAPSHOT_RESTORE, LOG_RESTORE = "snapshot-restore", "log-restore"
"""The steps of a replication restore."""
STEP_LABEL = "tidb.pingcap.com/replication-step"
UID_LABEL = "tidb.pingcap.com/restore-uid"
SCHEDULE_LABEL = "tidb.pingcap.com/backup-schedule"
COMPACT_LABEL = "tidb.pingcap.com/compact"
_COMPACT = "compactbackup"
GROUP_LABEL = "tidb.pingcap.com/backup-schedule-group"
"""Of the schedules with the same value, only one makes a backup at a time (5.1)."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of Kubernetes' safe encoding of names."""


def operator_of(family: str) -> str:
    """The value of `managed-by` of a family's objects."""
    return f"{family}-operator"


def jobs_selector() -> str:
    """The label selector of all Jobs that this operator creates."""
    makers = ",".join([*map(operator_of, (BACKUP, COMPACTION, RESTORE)), TIDB_OPERATOR])
    return f"{MANAGED_BY} in ({makers})"


def backup_job_name(backup: str) -> str:
    """The Job of a snapshot or an export."""
    return f"backup-{backup}"


def log_job_name(backup: str, command: str) -> str:
    """The Job for a subcommand of a log backup."""
    return f"{backup_job_name(backup)}-{command}"


def stop_job_name(backup: str) -> str:
    """The Job that stops the log backup of a deleted Backup."""
    return f"stop-{backup}"


def clean_job_name(backup: str) -> str:
    """The Job that removes the files of a deleted Backup."""
    return f"clean-{backup}"


def restore_job_name(restore: str) -> str:
    """The Job of a restore or an import."""
    return f"restore-{restore}"


def prune_job_name(restore: str) -> str:
    """The Job that removes the remains of a failed restore from the cluster."""
    return f"{restore_job_name(restore)}-prune"


def step_job_name(restore: str, step: str) -> str:
    """The Job of a step of a replication restore (RPL-10)."""
    return f"{restore}-{step}"


def time_in_name(time: datetime) -> str:
    """A time in the format of names and prefixes."""
    return time.astimezone(UTC).strftime("%Y-%m-%dt%H-%M-%S")


def time_of_name(text: str) -> datetime | None:
    """The time of such a text; None if it is not one."""
    try:
        return datetime.strptime(text, "%Y-%m-%dt%H-%M-%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def scheduled_name(schedule: str, due: datetime) -> str:
    """The Backup of a schedule for a due time; equal times give equal names."""
    return f"{schedule}-{time_in_name(due)}"


def scheduled_log_name(schedule: str) -> str:
    """The log backup of a schedule."""
    return f"log-{schedule}"


def scheduled_compaction_name(schedule: str, now: datetime) -> str:
    """A compaction of the schedule's log."""
    return f"compact-{schedule}-{time_in_name(now)}"


def claim_name(family: str, access: TiDBAccessConfig) -> str:
    """The claim of the volume that all exports of one TiDB, or all imports into it, share."""
    value = _FNV_OFFSET
    for byte in f"{access.host}_{access.port}".encode():
        value = value * _FNV_PRIME % 2**32 ^ byte
    return f"{family}-pvc-" + "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))


def instance_of(meta: Metadata) -> str:
    """The instance label of an object's objects: the object's own label, or its name."""
    return meta.labels.get(INSTANCE_LABEL) or meta.name


def job_labels(meta: Metadata, family: str, component: str) -> dict[str, str]:
    """The labels of a Job and its pods; the operator's labels override the object's."""
    own = claim_labels(meta, family) | {COMPONENT: component, f"tidb.pingcap.com/{family}": meta.name}
    return {**meta.labels, **own}


def sharded_labels(meta: Metadata) -> dict[str, str]:
    """The labels of the Job of a sharded compaction and of its pods, as in v1.7 (CMP-8)."""
    own = {NAME: _COMPACT, MANAGED_BY: operator_of(COMPACTION), INSTANCE: instance_of(meta)}
    return {**meta.labels, **own, COMPONENT: _COMPACT, COMPACT_LABEL: meta.name}


def claim_labels(meta: Metadata, family: str) -> dict[str, str]:
    """The labels of the claim of an export or import."""
    return {NAME: family, MANAGED_BY: operator_of(family), INSTANCE: instance_of(meta)}


def job_annotations(meta: Metadata) -> dict[str, str]:
    """The annotations of a Job and its pods: those on the object, without the record of `kubectl apply`."""
    return {key: value for key, value in meta.annotations.items() if key != LAST_APPLIED}


def owned(meta: Metadata, api_version: str, kind: str, name: str, labels: Mapping[str, str]) -> Json:
    """The metadata of an object that the given object controls."""
    reference = {"apiVersion": api_version, "kind": kind, "name": meta.name, "uid": meta.uid}
    made: Json = {
        "name": name,
        "namespace": meta.namespace,
        "labels": dict(labels),
        "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
    }
    if annotations := job_annotations(meta):
        made["annotations"] = annotations
    return made
