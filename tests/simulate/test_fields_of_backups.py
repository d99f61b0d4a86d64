"""R22: each field of a Backup, Restore, BackupSchedule or CompactBackup shows, is refused, or is named.

A field is set in objects that do each kind of work in a running sandbox. It shows in the objects that are made, in the
command of BR, Dumpling, TiDB Lightning or tikv-ctl, in the storage or TiDB that a pod connects to, or in a condition.
Variables that only v1.6's rclone reads do not count.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import pytest

import backup_manager.clean
import backup_manager.gc_life_time
import backup_manager.storage.deletion
import backup_manager.transfers
import rehearsal.backup_storage
import rehearsal.backups
from apis.storage_providers import StorageProvider
from backup_manager.child_process import OnLine
from backup_manager.compact import TIKV_CTL
from backup_manager.database import Login
from backup_manager.storage.location import Kind, Location
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    JOBS,
    RESTORES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TIDB_CLUSTERS,
    Resource,
)
from member.fields import backups
from member.fields.declared import fields_of, fits
from member.fields.ignored import ignored_by
from rehearsal.backup_storage import SANDBOX_S3
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.disk_files import DiskFiles
from sandbox.dataplane.processes import Disk
from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from simulate.manifests.type_mutants import MutantWorld
from tests.simulate.field_setting import as_text, with_field

ONLY_RCLONE = re.compile(
    r"AWS_ACL|AWS_DEFAULT_REGION|AWS_STORAGE_CLASS|AZURE_ACCESS_TIER|GCS_(OBJECT_ACL|BUCKET_ACL|LOCATION|STORAGE_CLASS)"
    r"|S3_ENDPOINT|S3_PROVIDER"
)
"""Variables of the pods that no program in them reads."""

S3: Json = {"provider": "aws", "bucket": "files", "prefix": "b", "endpoint": SANDBOX_S3, "secretName": "s3-keys"}
GCS: Json = {"projectId": "p", "bucket": "files", "prefix": "b", "secretName": "s3-keys"}
AZBLOB: Json = {"container": "files", "prefix": "b", "storageAccount": "store", "secretName": "s3-keys"}
LOCAL: Json = {
    "prefix": "b",
    "volume": {"name": "files", "emptyDir": {}},
    "volumeMount": {"name": "files", "mountPath": "/mnt/files"},
}
SAVED_S3, SAVED_GCS, SAVED_AZBLOB, SAVED_LOCAL = (each | {"prefix": "a"} for each in (S3, GCS, AZBLOB, LOCAL))
"""The directory of the files of `Recorder.keep_files`."""
BR: Json = {"br": {"cluster": "tiny"}}
SQL: Json = {"host": "tiny-tidb", "secretName": "no-password"}
EXPORT: Json = {"from": SQL, "storageSize": "1Gi"}
IMPORT: Json = {"to": SQL, "storageSize": "1Gi"}
CLEANED: Json = {"cleanPolicy": "Delete"}
NO_GC: Json = {"gc": {"ratio-threshold": -1.0}}
POINT: Json = {"br": {"cluster": "quiet"}, "restoreMode": "pitr"}
FULL = "pitrFullBackupStorageProvider"
SPAN: Json = {"startTs": "2026-01-01 00:00:00", "endTs": "2026-01-02 00:00:00"}
EVERY_MINUTE: Json = {"schedule": "* * * * *", "backupTemplate": {}}

WAYS: Mapping[Resource, Mapping[str, Json]] = {
    BACKUPS: {
        "BR to S3": BR | {"s3": S3} | CLEANED,
        "BR to S3, with SQL": BR | {"s3": S3, "from": SQL},
        "BR of a table": BR | {"s3": S3, "backupType": "table", "br": {"cluster": "tiny", "db": "a", "table": "b"}},
        "BR with a filter": BR | {"s3": S3, "tableFilter": ["a.*"]},
        "BR to GCS": BR | {"gcs": GCS} | CLEANED,
        "BR to Azure": BR | {"azblob": AZBLOB} | CLEANED,
        "BR to a volume": BR | {"local": LOCAL},
        "log": BR | {"s3": S3, "backupMode": "log"},
        "export to S3": {"s3": S3} | EXPORT | CLEANED,
        "export to GCS": {"gcs": GCS} | EXPORT,
    },
    RESTORES: {
        "BR from S3": BR | {"s3": SAVED_S3},
        "BR from S3, with SQL": BR | {"s3": SAVED_S3, "to": SQL},
        "BR of a database": BR | {"s3": SAVED_S3, "backupType": "db", "br": {"cluster": "tiny", "db": "a"}},
        "BR from a volume": BR | {"local": SAVED_LOCAL},
        "point in time": POINT | {"s3": SAVED_S3, FULL: {"s3": SAVED_S3}},
        "point in time, GCS": POINT | {"gcs": SAVED_GCS, FULL: {"gcs": SAVED_GCS}},
        "point in time, Azure": POINT | {"azblob": SAVED_AZBLOB, FULL: {"azblob": SAVED_AZBLOB}},
        "point in time, volume": POINT | {"local": SAVED_LOCAL, FULL: {"local": SAVED_LOCAL}},
        "point in time, log alone": POINT | {"s3": SAVED_S3, "logRestoreStartTs": "1"},
        "import from S3": {"s3": SAVED_S3 | {"path": "files/a.tgz"}} | IMPORT,
        "import from GCS": {"gcs": SAVED_GCS | {"path": "files/a.tgz"}} | IMPORT,
    },
    COMPACT_BACKUPS: {
        "S3": BR | {"s3": S3} | SPAN,
        "GCS": BR | {"gcs": GCS} | SPAN,
        "Azure": BR | {"azblob": AZBLOB} | SPAN,
        "volume": BR | {"local": LOCAL} | SPAN,
    },
}

OTHER_VALUES: Mapping[str, object] = {
    "additionalVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "backupMode": "log",
    "restoreMode": "pitr",
    "backupType": "db",
    "br.cluster": "another",
    "br.clusterNamespace": "elsewhere",
    "br.options": ["--cleanup=false"],
    "commitTs": "400036290571534337",
    "dumpling.options": ["--threads=2"],
    "endTs": "2026-01-03 00:00:00",
    "env": [{"name": "COLOR", "value": "blue"}],
    "logSubcommand": "log-pause",
    "logTruncateUntil": "1",
    "local.volume": {"name": "files", "hostPath": {"path": "/x"}},
    "local.volumeMount": {"name": "files", "mountPath": "/mnt/elsewhere"},
    "minRetryDuration": "10s",
    "pitrRestoredTs": "400036290571534337",
    "logRestoreStartTs": "400036290571534337",
    "resources": {"requests": {"cpu": "1"}},
    "retryTimeout": "3m",
    "s3.options": ["--s3-chunk-size=8M"],
    "s3.path": "files/b.tgz",
    "s3.sse": "AES256",
    "s3.forcePathStyle": False,
    # a false value is not reported
    "pitrFullBackupStorageProvider.s3.forcePathStyle": True,
    "s3.endpoint": "http://s3.example.com",
    "gcs.path": "files/b.tgz",
    "startTs": "2025-12-31 00:00:00",
    "storageSize": "3Gi",
    "tikvGCLifeTime": "100h",
}
"""Values of fields, by the end of their path; others follow from the type."""

ELSEWHERE: Mapping[str, str] = {
    "cleanPolicy": "a deletion",
    "backoffRetryPolicy.*": "a Job that fails",
    "prune": "a restore that fails",
    "logTruncateUntil": "a log that has been saved up to it",
    "storageClassName": "a new claim; here all exports share one, and all imports",
    "volumeAttributesClassName": "a new claim",
    "*.tlsClientSecretName": "a cluster with TLS",
    "gcs.projectId": "nothing: the credentials name the project, but v1.6 requires it",
    "pitrFullBackupStorageProvider.gcs.projectId": "nothing, like that of the log",
    "pitrFullBackupStorageProvider.s3.provider": "nothing: BR has one, but v1.6 requires it",
    "pitrFullBackupStorageProvider.local.volume": "a mount of its own; here both are one",
}
"""Fields that show only with something that this world lacks; each has other tests."""


class Recorder:
    """Records which tools the pods run, and what storage and TiDB they connect to, instead of going to the network."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self._disks: dict[str, Disk] = {}
        self._given: dict[str, bytes] = {}
        run, connect = rehearsal.backups._Launcher.run, rehearsal.backups._Tidb.__init__
        store, write = rehearsal.backup_storage.storage_at, rehearsal.backups._Tidb.set_variable
        delete, parts = backup_manager.storage.deletion.delete_all, backup_manager.transfers.parts_of

        def running(launcher: Any, command: Sequence[str], environ: Any, on_line: OnLine, stop: Any) -> int:
            self.seen.append(" ".join(command))
            if "base64ify" in command:
                on_line("ENCODED", False)
                return 0
            return 0 if command[0] == TIKV_CTL else run(launcher, command, environ, on_line, stop)

        def connecting(database: Any, surroundings: Surroundings, login: Login) -> None:
            self.seen.append(repr(login))
            connect(database, surroundings, login)

        def opening(surroundings: Surroundings, location: Location) -> DiskFiles:
            self.seen.append(f"{location!r} {location.sas_token}")
            found = surroundings.launch.on_disk(location.path) if location.kind is Kind.LOCAL else None
            disk, prefix = found or (surroundings.disk(f"{location.kind}://{location.bucket}"), location.prefix)
            if disk.uid not in self._disks:
                self._disks[disk.uid] = disk
                disk.objects |= self._given
            return DiskFiles(disk, prefix, surroundings)

        def storing(surroundings: Surroundings, location: Location, environ: Any, *, bulk: bool) -> Any:
            self.seen.append(f"bulk: {bulk}")
            return store(surroundings, location, environ, bulk=bulk)

        def setting(database: Any, name: str, value: str) -> None:
            self.seen.append(f"{name} = {value}")
            write(database, name, value)

        def deleting(storage: Any, pace: Any, *more: Any) -> Any:
            self.seen.append(repr(pace))
            return delete(storage, pace, *more)

        def cutting(storage: StorageProvider) -> Any:
            self.seen.append(repr(parts(storage)))
            return parts(storage)

        # a pod that TiDB refuses ends, instead of waiting beyond the test
        patch.setattr(backup_manager.gc_life_time, "_PATIENCE", 0.0)
        patch.setattr(rehearsal.backups._Launcher, "run", running)
        patch.setattr(rehearsal.backups._Tidb, "__init__", connecting)
        patch.setattr(rehearsal.backups._Tidb, "set_variable", setting)
        patch.setattr(rehearsal.backups, "storage_at", storing)
        patch.setattr(rehearsal.backup_storage, "_disk_files", opening)
        patch.setattr(backup_manager.clean, "delete_all", deleting)
        patch.setattr(backup_manager.transfers, "parts_of", cutting)

    def forget(self) -> None:
        """Forget the records, and empty all storages except for the files that a restore reads."""
        self.seen.clear()
        for disk in self._disks.values():
            disk.objects = dict(self._given)

    def keep_files(self) -> None:
        """Fill each storage with the files of the last Backup and the archive of the last export."""
        for disk in self._disks.values():
            for name, content in disk.objects.items():
                self._given["a.tgz" if name.endswith(".tgz") else f"a/{name.partition('/')[2]}"] = content


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with pytest.MonkeyPatch.context() as patch:
        found = Recorder(patch)
        for spec in (WAYS[BACKUPS][way] for way in ("BR to a volume", "export to GCS")):
            world().outcome_of(BACKUPS, spec, (), SECONDS)
        found.keep_files()
        yield found


@cache
def world() -> MutantWorld:
    """One world for all tests, with changing objects."""
    account = {"metadata": {"name": "tidb-backup-manager"}, "automountServiceAccountToken": True}
    no_password = {"metadata": {"name": "no-password"}, "data": {"password": ""}}
    quiet = merged(CLUSTERS["tiny"](), {"metadata": {"name": "quiet"}, "spec": {"tikv": {"config": NO_GC}}})
    return MutantWorld(1, [(SERVICE_ACCOUNTS, account), (SECRETS, no_password), (TIDB_CLUSTERS, quiet)])


_KNOWN: dict[bytes, str] = {}
"""The outcomes of specs, since most fields are compared with the same few."""


def outcome(recorder: Recorder, resource: Resource, spec: Json) -> str:
    """The result of a spec, as text."""
    key = msgspec.json.encode([resource.kind, spec])
    if key not in _KNOWN:
        recorder.forget()
        found = world().outcome_of(resource, spec, (JOBS,), SECONDS, ends_within=SECONDS)
        _KNOWN[key] = found if isinstance(found, str) else _text(*found, recorder.seen)
    return _KNOWN[key]


SECONDS = 10.0
"""Seconds until the Job of an object has called its tool, or has deleted its files."""


OF_EACH_RUN = r"m\d{5}x|(volume|lightning)-\w{8}|\d{4}-\d\d-\d\dT[\d:]+Z"
"""Names, directories and times in commands."""


def _text(objects: list[Json], conditions: list[Json], seen: Sequence[str]) -> str:
    for each in objects:
        for container in each["spec"].get("template", {}).get("spec", {}).get("containers", ()):
            container["env"] = [one for one in container.get("env", ()) if not ONLY_RCLONE.fullmatch(one["name"])]
    named = dict.fromkeys(re.sub(OF_EACH_RUN, "", each) for each in seen)
    return "\n".join((as_text(objects, conditions), *named))


def silent(recorder: Recorder, resource: Resource, way: str, paths: Sequence[str]) -> Iterator[str]:
    """The fields that change nothing in an object that does its work in this way, and of which nothing is said."""
    spec, known = WAYS[resource][way], fields_of(resource.kind)
    for path in paths:
        changed = with_field(spec, path, known[path], OTHER_VALUES)
        if any(fits(path, glob) for glob in ELSEWHERE) or _is_named(resource, path, changed):
            continue
        if outcome(recorder, resource, spec) == outcome(recorder, resource, changed):
            yield path


def _is_named(resource: Resource, path: str, spec: Json) -> bool:
    return any(f"spec.{path}.".startswith(f"{each.field}.") for each in ignored_by(resource.kind, spec))


EVERY_WAY = [(resource, way) for resource, ways in WAYS.items() for way in ways]


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_some_fields_show_or_are_named_in_objects_of_every_way(recorder: Recorder) -> None:
    """Each way tries other fields."""
    found = {
        (resource.kind, way): list(silent(recorder, resource, way, list(fields_of(resource.kind))[index::30]))
        for index, (resource, way) in enumerate(EVERY_WAY)
    }
    assert {} == {way: paths for way, paths in found.items() if paths}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(("resource", "way"), EVERY_WAY, ids=lambda each: getattr(each, "kind", each))
@pytest.mark.rule("R22")
def test_every_field_shows_or_is_named_in_objects_of_every_way(
    recorder: Recorder, resource: Resource, way: str
) -> None:
    assert [] == list(silent(recorder, resource, way, list(fields_of(resource.kind))[::_EACH]))


def test_every_field_that_shows_elsewhere_exists() -> None:
    known = {path for resource in WAYS for path in fields_of(resource.kind)}
    assert [] == [glob for glob in ELSEWHERE if not any(fits(path, glob) for path in known)]


@pytest.mark.slow
def test_reports_a_field_that_nothing_reads_and_nothing_names(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "without_effect", lambda _kind, _spec: {})
    assert ["storageSize"] == list(silent(recorder, BACKUPS, "BR to S3", ["storageSize"]))


OF_TEMPLATES = ("backupTemplate.", "logBackupTemplate.", "compactBackupTemplate.")
SCHEDULES: Mapping[str, tuple[Json, Sequence[str]]] = {
    "snapshots": (EVERY_MINUTE | {"backupTemplate": BR | {"s3": S3}}, OF_TEMPLATES[:1]),
    "snapshots with the storage of the schedule": (EVERY_MINUTE | BR | {"s3": S3}, ()),
    "exports": (EVERY_MINUTE | {"s3": S3, "storageSize": "1Gi", "backupTemplate": {"from": SQL}}, ()),
    "snapshots, a log and compactions": (
        EVERY_MINUTE
        | BR
        | {"s3": S3, "logBackupTemplate": {"backupMode": "log"}, "compactBackupTemplate": {}, "compactInterval": "1m"},
        OF_TEMPLATES[1:],
    ),
}
"""Kinds of schedules, each with the templates whose fields are set in it, besides the fields of the schedule."""

SCHEDULED_FOR = 180.0
"""Seconds in which a schedule is due three times."""


def scheduled(spec: Json) -> str:
    """The Backups and CompactBackups of a schedule, and its conditions, as text without times."""
    found = world().outcome_of(BACKUP_SCHEDULES, spec, (BACKUPS, COMPACT_BACKUPS), SCHEDULED_FOR)
    return found if isinstance(found, str) else re.sub(r"\d{4}-\d\d-\d\dt[\d-]{8}", "", as_text(*found))


_EACH = 1 if os.environ.get("FIELDS") == "all" else 6
"""Every which field is set; `make simulate` sets all."""


def silent_in_schedules(way: str, paths: Sequence[str]) -> list[str]:
    """The fields that change no object of a schedule, and that nothing names."""
    spec, known = SCHEDULES[way][0], fields_of(BACKUP_SCHEDULES.kind)
    edits = {path: with_field(spec, path, known[path], OTHER_VALUES) for path in paths}
    unnamed = {path: edit for path, edit in edits.items() if not _is_named(BACKUP_SCHEDULES, path, edit)}
    before = scheduled(spec) if unnamed else ""
    found = [path for path, edit in unnamed.items() if before == scheduled(edit)]
    world().rest(60.0)
    return found


def set_in_schedules(way: str) -> list[str]:
    """The fields that are set in this kind of schedule."""
    known = fields_of(BACKUP_SCHEDULES.kind)
    return [each for each in known if not each.startswith(OF_TEMPLATES) or each.startswith(tuple(SCHEDULES[way][1]))]


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_some_fields_of_schedules_show_or_are_named(recorder: Recorder) -> None:
    found = {way: silent_in_schedules(way, set_in_schedules(way)[index::200]) for index, way in enumerate(SCHEDULES)}
    assert {} == {way: paths for way, paths in found.items() if paths}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", SCHEDULES)
@pytest.mark.rule("R22")
def test_every_field_of_schedules_shows_or_is_named(recorder: Recorder, way: str) -> None:
    """A field of a template shows in the spec of its Backup, whose fields have tests of their own."""
    assert [] == silent_in_schedules(way, set_in_schedules(way)[::_EACH])


def test_every_field_of_schedules_is_set_in_one_of_them() -> None:
    assert set(fields_of(BACKUP_SCHEDULES.kind)) == {path for way in SCHEDULES for path in set_in_schedules(way)}


@pytest.mark.slow
def test_reports_a_field_of_schedules_that_nothing_reads(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "without_effect", lambda _kind, _spec: {})
    assert ["storageClassName"] == silent_in_schedules("snapshots", ["storageClassName"])


def named(kind: str, spec: Json) -> set[str]:
    return {each.field for each in ignored_by(kind, spec)}


TEMPLATES = [
    (BACKUPS.kind, "backupTemplate", {"s3": S3, "storageSize": "1Gi", "logStop": True, "calcSizeLevel": "own"}),
    (BACKUPS.kind, "logBackupTemplate", {"s3": S3, "backupMode": "log", "from": SQL, "cleanOption": {"pageSize": 1}}),
    (COMPACT_BACKUPS.kind, "compactBackupTemplate", {"s3": S3 | {"path": "x"}, "useKMS": True}),
]


@pytest.mark.parametrize(("kind", "template", "spec"), TEMPLATES)
def test_a_template_names_what_its_objects_would(kind: str, template: str, spec: Json) -> None:
    of_object = {field.replace("spec", f"spec.{template}", 1) for field in named(kind, BR | spec)}
    of_schedule = named("BackupSchedule", {"backupTemplate": BR, template: BR | spec})
    assert of_object
    assert of_object == {each for each in of_schedule if each.startswith(f"spec.{template}.")}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (BR | {"s3": S3, "backupTemplate": {}}, set()),
        (BR | {"s3": S3, "backupTemplate": BR | {"gcs": GCS}}, {"spec.br", "spec.s3"}),
        ({"storageSize": "2Gi", "backupTemplate": {"from": SQL, "s3": S3}}, set()),
        ({"storageSize": "2Gi", "backupTemplate": EXPORT | {"s3": S3}}, {"spec.storageSize"}),
        (BR | {"storageSize": "2Gi", "backupTemplate": {"s3": S3}}, {"spec.storageSize"}),
        ({"maxBackups": 3, "maxReservedTime": "24h", "backupTemplate": {}}, {"spec.maxBackups"}),
        ({"compactInterval": "24h", "backupTemplate": {}}, {"spec.compactInterval"}),
        (
            {"compactInterval": "24h", "backupTemplate": {}, "compactBackupTemplate": SPAN},
            {"spec.compactBackupTemplate.startTs", "spec.compactBackupTemplate.endTs"},
        ),
        (
            {"imagePullSecrets": [{"name": "a"}], "backupTemplate": {"imagePullSecrets": [{"name": "b"}]}},
            {"spec.backupTemplate.imagePullSecrets"},
        ),
    ],
)
def test_a_schedule_names_what_its_templates_do_not_inherit(spec: Json, fields: set[str]) -> None:
    assert fields == named("BackupSchedule", spec)


def test_a_signature_is_not_shown() -> None:
    full = {"pitrFullBackupStorageProvider": {"azblob": AZBLOB | {"sasToken": "signature"}}}
    (problem,) = ignored_by("Restore", BR | {"s3": S3} | full)
    assert "signature" not in str(problem)
