"""Fields without effect of Backup, Restore, BackupSchedule and CompactBackup, by the work that a spec requests. Pure.

BR, Dumpling, TiDB Lightning and tikv-ctl each read some of the fields that all Jobs have (backup.md 7.6, 7.8, 7.9). A
path may name a whole table. Volume snapshots are not offered, so their fields never have an effect.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from apis.compact_backups import SHARDED
from apis.shared import Json
from member.fields.declared import NoEffect

_Found: TypeAlias = dict[str, NoEffect]

_STORAGES = ("s3", "gcs", "azblob", "local")
TEMPLATES = ("backupTemplate", "logBackupTemplate", "compactBackupTemplate")
"""The tables of a BackupSchedule that are specs of other objects."""


def without_effect(kind: str, spec: Json) -> _Found:
    """The fields that have no effect beside the rest of a user's spec, by path; empty for a kind without Jobs."""
    of_kind = _OF_KIND.get(kind)
    return of_kind(spec) if of_kind else {}


def _all(names: Iterable[str], why: NoEffect) -> _Found:
    return dict.fromkeys(names, why)


def _below(field: str, found: _Found) -> _Found:
    return {f"{field}.{path}": why for path, why in found.items()}


def _table(spec: Json, name: str) -> Json:
    """A table of a spec; empty if it is absent or has another type, which `validate` reports."""
    found = spec.get(name)
    return found if isinstance(found, dict) else {}


# Storages

_RCLONE = NoEffect("only rclone reads it, which copies no files here")
_NAMED_BY_BUCKET = NoEffect("the bucket and the prefix name the place")
_NAMED_BY_CONTAINER = NoEffect("the container and the prefix name the place")
_BR_COPIES = NoEffect("only archives of exports are copied with it", "put options of BR into br.options")
_PLAIN_UPLOAD = NoEffect("the archive is uploaded without it", "set it on the bucket")
_NAMED_BY_PATH = NoEffect("path names the archive")
_NOT_FOR_READING = NoEffect("an import only reads the archive")

_OF_EVERY_STORAGE = {"gcs.location": _RCLONE, "gcs.bucketAcl": _RCLONE, "azblob.path": _NAMED_BY_CONTAINER}
_ATTRIBUTES = ("s3.acl", "s3.storageClass", "gcs.storageClass", "gcs.objectAcl")
_PLACED_BY_BUCKET = _OF_EVERY_STORAGE | _all(("s3.path", "gcs.path"), _NAMED_BY_BUCKET)
_OF_BR_STORAGE = _PLACED_BY_BUCKET | {"s3.options": _BR_COPIES}
_OF_EXPORT_STORAGE = _PLACED_BY_BUCKET | _all(_ATTRIBUTES, _PLAIN_UPLOAD)
_OF_IMPORT_STORAGE = (
    _OF_EVERY_STORAGE
    | _all((*_ATTRIBUTES, "s3.sse"), _NOT_FOR_READING)
    | _all((f"{name}.{each}" for name in ("s3", "gcs") for each in ("bucket", "prefix")), _NAMED_BY_PATH)
)

# What BR, Dumpling and TiDB Lightning share

_NO_VOLUMES = NoEffect("BR copies to and from the storage without a volume")
_VOLUME = ("storageClassName", "volumeAttributesClassName", "storageSize")
_NO_VOLUME_SNAPSHOTS = NoEffect("volume snapshots are not offered")
_ONLY_LOG = NoEffect("it belongs to a log backup", "set backupMode to log, or remove it")
_ONLY_PITR = NoEffect("it belongs to a restore to a point in time", "set restoreMode to pitr, or remove it")
_FILTERED = NoEffect("tableFilter selects the tables")


def _selection(spec: Json) -> _Found:
    """`br.db` and `br.table`, which `backupType` must request and a filter replaces."""
    named = ("br.db", "br.table")
    if spec.get("tableFilter"):
        return _all(named, _FILTERED)
    kind = spec.get("backupType") or "full"
    selected = {"db": 1, "table": 2}.get(kind, 0)
    wanted = "table" if _table(spec, "br").get("table") else "db"
    why = NoEffect(f"backupType is {kind}", f"set backupType to {wanted}, or remove it")
    return _all(named[selected:], why)


def _without_login(spec: Json, access: str) -> _Found:
    """The fields about access to TiDB by SQL, which a spec without `access` does not request."""
    if spec.get(access):
        return {}
    life_time = NoEffect("the Job does not connect to TiDB", f"set {access}, or remove it")
    return {"tikvGCLifeTime": life_time, "useKMS": NoEffect("the Job gets no password to decrypt")}


# Backup

_OF_EVERY_BACKUP = _all(
    (
        "calcSizeLevel",
        "federalVolumeBackupPhase",
        "resumeGcSchedule",
        "volumeBackupInitJobMaxActiveSeconds",
        "cleanOption.snapshotsDeleteRatio",
    ),
    _NO_VOLUME_SNAPSHOTS,
)
_LOG_COMMANDS = ("logSubcommand", "logTruncateUntil", "logStop")
_OF_BR_BACKUP = (
    _OF_EVERY_BACKUP
    | _OF_BR_STORAGE
    | _all(_VOLUME, _NO_VOLUMES)
    | {
        "dumpling": NoEffect("BR makes the backup, not Dumpling"),
        "br.onLine": NoEffect("BR knows it only for restores"),
    }
)
_RETRIES = ("minRetryDuration", "maxRetryTimes", "retryTimeout")
_OF_LOG = (
    _OF_BR_BACKUP
    | {
        "from": NoEffect("a log backup needs no SQL"),
        "tikvGCLifeTime": NoEffect("a log backup reads no old versions"),
    }
    | _all(
        (f"backoffRetryPolicy.{each}" for each in _RETRIES),
        NoEffect("it is for snapshots", "delete the failed Job of a log backup to try again"),
    )
)
_OF_SNAPSHOT = _OF_BR_BACKUP | _all(_LOG_COMMANDS, _ONLY_LOG)
_OF_EXPORT = (
    _OF_EVERY_BACKUP
    | _OF_EXPORT_STORAGE
    | _all(_LOG_COMMANDS, _ONLY_LOG)
    | {
        "backupType": NoEffect("Dumpling exports what its filter selects", "set tableFilter, or remove it"),
        "commitTs": NoEffect("only BR reads it", "put --snapshot into dumpling.options, or remove it"),
        "cleanOption": NoEffect("an export is a single archive"),
    }
)


def _of_backup(spec: Json) -> _Found:
    cleaning = _of_cleaning(spec)
    if not spec.get("br"):
        filtered = {"dumpling.tableFilter": _FILTERED} if spec.get("tableFilter") else {}
        return cleaning | _OF_EXPORT | filtered
    if spec.get("backupMode") == "log":
        return cleaning | _selection(spec) | _without_login(spec, "from") | _OF_LOG
    return cleaning | _selection(spec) | _without_login(spec, "from") | _OF_SNAPSHOT


def _of_cleaning(spec: Json) -> _Found:
    """The fields about the removal of files, beside `cleanPolicy` and the kind of storage."""
    if (spec.get("cleanPolicy") or "Retain") == "Retain":
        why = NoEffect("cleanPolicy Retain keeps the files", "set cleanPolicy to Delete or OnFailure, or remove it")
        return {"cleanOption": why}
    if not spec.get("s3"):
        why = NoEffect("only S3 deletes objects in batches", "set cleanOption.routineConcurrency, or remove it")
        return _all(("cleanOption.batchConcurrency", "cleanOption.disableBatchConcurrency"), why)
    if _table(spec, "cleanOption").get("disableBatchConcurrency"):
        return {"cleanOption.batchConcurrency": NoEffect("disableBatchConcurrency is true")}
    why = NoEffect("S3 deletes objects in batches", "set disableBatchConcurrency to true, or remove it")
    return {"cleanOption.routineConcurrency": why}


# Restore

_OF_EVERY_RESTORE = _all(
    (
        *("federalVolumeRestorePhase", "volumeAZ", "tolerateSingleTiKVOutage"),
        *("warmup", "warmupImage", "warmupStrategy"),
    ),
    _NO_VOLUME_SNAPSHOTS,
)
_OF_BR_RESTORE = (
    _OF_EVERY_RESTORE
    | _OF_BR_STORAGE
    | _all(_VOLUME, _NO_VOLUMES)
    | {"br.timeAgo": NoEffect("BR knows it only for backups", "set pitrRestoredTs, or remove it")}
)
_POINT_IN_TIME = ("pitrRestoredTs", "logRestoreStartTs", "pitrFullBackupStorageProvider")
_OF_SNAPSHOT_RESTORE = _OF_BR_RESTORE | _all(_POINT_IN_TIME, _ONLY_PITR)
_BASE = NoEffect("BR reads the snapshot with the settings of the log's storage", "set it there, or remove it")
_OF_POINT_IN_TIME = _OF_BR_RESTORE | _below(
    "pitrFullBackupStorageProvider",
    _OF_EVERY_STORAGE
    | _all(("s3.path", "gcs.path"), _NAMED_BY_BUCKET)
    | _all((f"s3.{each}" for each in ("region", "storageClass", "acl", "secretName", "sse", "forcePathStyle")), _BASE)
    | _all((f"gcs.{each}" for each in ("storageClass", "objectAcl", "secretName")), _BASE)
    | _all(("s3.options", "azblob.accessTier", "azblob.secretName"), _BASE),
)
_OF_IMPORT = (
    _OF_EVERY_RESTORE
    | _OF_IMPORT_STORAGE
    | _all(_POINT_IN_TIME, _ONLY_PITR)
    | {
        "backupType": NoEffect("TiDB Lightning imports what its filter selects", "set tableFilter, or remove it"),
        "tikvGCLifeTime": NoEffect("TiDB Lightning reads no old versions"),
        "prune": NoEffect("only BR can undo a failed restore"),
        "backoffLimit": NoEffect("the Job of an import has one pod", "create another Restore to try again"),
    }
)


def _of_restore(spec: Json) -> _Found:
    if not spec.get("br"):
        return _OF_IMPORT
    is_to_point = spec.get("restoreMode") == "pitr"
    by_mode = _OF_POINT_IN_TIME if is_to_point else _OF_SNAPSHOT_RESTORE
    return _selection(spec) | _without_login(spec, "to") | by_mode


# CompactBackup

_OPTIONS_OF_BR = (
    *("db", "table", "logLevel", "statusAddr", "rateLimit", "timeAgo", "checksum", "checkRequirements"),
    *("sendCredToTikv", "onLine", "options"),
)
_OF_COMPACTION = (
    _OF_BR_STORAGE
    | _all((f"br.{each}" for each in _OPTIONS_OF_BR), NoEffect("tikv-ctl compacts the log, not BR"))
    | {
        "br.concurrency": NoEffect("tikv-ctl compacts the log, not BR", "set concurrency, or remove it"),
        "s3.options": NoEffect("only archives of exports are copied with it"),
        "useKMS": NoEffect("the Job gets no password to decrypt"),
    }
)


_ONLY_SHARDED = NoEffect("only shards keep files", "set mode to sharded, or remove it")


def _of_compaction(spec: Json) -> _Found:
    is_sharded = spec.get("mode") == SHARDED
    return _OF_COMPACTION if is_sharded else _OF_COMPACTION | {"physicalFileCacheCapacity": _ONLY_SHARDED}


# BackupSchedule

_OF_SPAN = NoEffect("the schedule sets it for each compaction")
_NO_COMPACTIONS = NoEffect("the schedule makes no compactions", "add compactBackupTemplate, or remove it")


def _of_schedule(spec: Json) -> _Found:
    """The fields of the schedule, and the fields of its templates, which inherit storage and `br` from the schedule."""
    templates = {name: _table(spec, name) for name in TEMPLATES if spec.get(name) is not None}
    found = dict(_inherited_in_vain(spec, templates.values()))
    if spec.get("imagePullSecrets"):
        why = NoEffect("imagePullSecrets of the schedule replaces it")
        found |= _all((f"{name}.imagePullSecrets" for name in templates), why)
    if spec.get("maxReservedTime"):
        found["maxBackups"] = NoEffect("maxReservedTime decides which backups stay")
    if "compactBackupTemplate" not in templates:
        found |= _all(("compactInterval", "minCompactStartTs"), _NO_COMPACTIONS)
    found |= _all((f"compactBackupTemplate.{each}" for each in ("startTs", "endTs")), _OF_SPAN)
    for name, template in templates.items():
        of_made = _of_compaction if name == "compactBackupTemplate" else _of_backup
        found |= _below(name, of_made(_with_inherited(template, spec)))
    return found


def _inherited_in_vain(spec: Json, templates: Iterable[Json]) -> _Found:
    """The fields of the schedule that every template already has, or that the snapshots do not need."""
    templates = list(templates)
    found: dict[str, NoEffect] = {}
    if all(any(template.get(name) for name in _STORAGES) for template in templates):
        found |= _all(_STORAGES, NoEffect("every template names its storage"))
    if all(template.get("br") or template.get("from") for template in templates):
        found["br"] = NoEffect("every template names its cluster")
    snapshot = _with_inherited(_table(spec, "backupTemplate"), spec)
    if snapshot.get("br"):
        return found | _all(_VOLUME, _NO_VOLUMES)
    set_there = NoEffect("backupTemplate has its own")
    return found | _all((each for each in _VOLUME if snapshot.get(each)), set_there)


def _with_inherited(template: Json, spec: Json) -> Json:
    """A template as its Backup or CompactBackup gets it (`apis.backup_defaulting`)."""
    whole = dict(template)
    if not any(template.get(name) for name in _STORAGES):
        whole |= {name: spec[name] for name in _STORAGES if spec.get(name)}
    if not (template.get("br") or template.get("from")) and spec.get("br"):
        whole["br"] = spec["br"]
    return whole


_OF_KIND: Mapping[str, Callable[[Json], _Found]] = {
    "Backup": _of_backup,
    "Restore": _of_restore,
    "BackupSchedule": _of_schedule,
    "CompactBackup": _of_compaction,
}
