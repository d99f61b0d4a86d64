"""Exports by Dumpling and imports by TiDB Lightning (backup.md 7.9)."""

import io
import tarfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from backup_manager.exports import ALLOWED, ExportOptions, run_export
from backup_manager.flags import Tls
from backup_manager.imports import ImportOptions, run_import
from backup_manager.outcomes import JobFailed, Stopped, Unusable
from backup_manager.outside import Outside
from backup_manager.storage.objects import open_storage
from kube.objects import Json
from kube.resources import BACKUPS, RESTORES
from ports.stopping import Stop
from tests.backup_manager.dumping import FILES, Tools
from tests.backup_manager.storage.conftest import Start, servers
from tests.backup_manager.storage.fakes import failing
from tests.backup_manager.worlds import NAME, NAMESPACE, World

__all__ = ["servers"]

PASSWORD = "hunter2-hunter2"
ACCESS = {"host": "tidb", "secretName": "s"}
NAME_OF_ARCHIVE = "backup-1970-01-01T00:00:00Z.tgz"
ARCHIVE = f"s3://bucket/some/prefix/{NAME_OF_ARCHIVE}"


class Volume:
    """A world with tools and a volume."""

    def __init__(self, directory: Path) -> None:
        self.world = World()
        self.world.environ["BACKUP_MANAGER_PASSWORD"] = PASSWORD
        self.tools = Tools()
        self.directory = directory

    @property
    def outside(self) -> Outside:
        return replace(self.world.outside(), launcher=self.tools, volume=self.directory)

    def backup(self, **spec: Any) -> None:
        self.world.backup(**({"br": None, "from": ACCESS, "storageSize": "1Gi"} | spec))

    def restore(self, **spec: Any) -> None:
        s3 = {"provider": "aws", "bucket": "bucket", "path": ARCHIVE}
        self.world.restore(**({"br": None, "to": ACCESS, "storageSize": "1Gi", "s3": s3} | spec))

    def export(self, **options: Any) -> None:
        made = ExportOptions(NAMESPACE, NAME, storage_type="s3")
        run_export(replace(made, **options), self.outside)

    def bring_in(self, path: str = ARCHIVE, **options: Any) -> None:
        made = ImportOptions(NAMESPACE, NAME, backup_path=path)
        run_import(replace(made, **options), self.outside)

    def left(self) -> list[str]:
        return sorted(path.name for path in self.directory.rglob("*") if path.is_file())

    def archived(self) -> dict[str, str]:
        content = next(iter(self.world.storage.objects.values()))
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            found = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
            return {name: file.read().decode() for name, file in found.items() if file}


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    return Volume(tmp_path)


def failed(volume: Volume, work: Any) -> tuple[str, str]:
    with pytest.raises(JobFailed):
        work()
    resource = BACKUPS if volume.world.client.find(BACKUPS, NAME, NAMESPACE) else RESTORES
    last = volume.world.status(resource)["conditions"][-1]
    assert "Failed" == last["type"]
    return last["reason"], last["message"]


def archive_of(files: dict[str, str], top: str = "any/") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(top + name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.mark.rule("backup-7.9")
def test_an_export_becomes_one_archive_and_cleans_up_the_volume(volume: Volume) -> None:
    volume.backup()
    volume.export()
    status = volume.world.status(BACKUPS)
    assert ["Prepare", "Running", "Complete"] == volume.world.conditions(BACKUPS)
    [(name, content)] = volume.world.storage.objects.items() - {("backup-manager.probe", b"")}
    assert f"s3://bucket/some/prefix/{name}" == status["backupPath"]
    top = name.removesuffix(".tgz")
    assert {f"{top}/{file}": text for file, text in FILES.items()} == volume.archived()
    assert ("449000000000", len(content)) == (status["commitTs"], status["backupSize"])
    assert [("Upload", 100)] == [(each["step"], each["progress"]) for each in status["progresses"]]
    assert [] == volume.left()
    assert ["72h", "10m0s"] == volume.world.tidb.history


@pytest.mark.rule("backup-7.9")
def test_the_arguments_of_dumpling_equal_v1_6_without_the_password(volume: Volume) -> None:
    volume.backup(dumpling={"options": ["--threads=2"], "tableFilter": ["a.*"]})
    volume.export(tls=Tls(client=True))
    [command] = volume.tools.commands
    output = next(word for word in command if word.startswith("--output="))
    assert output.startswith(f"--output={volume.directory}/bucket/some/prefix/backup-")
    certificates = [f"--{name}=/var/lib/tidb-client-tls/{file}" for name, file in TLS.items()]
    rest = ["--host=tidb", "--port=4000", "--user=root", "--filter", "a.*", "--threads=2", *certificates]
    assert ["/dumpling", output, *rest] == list(command)
    assert PASSWORD == volume.tools.environs[0]["MYSQL_PWD"]


TLS = {"ca": "ca.crt", "cert": "tls.crt", "key": "tls.key"}


@pytest.mark.rule("backup-7.9")
def test_defaults_of_dumpling_and_the_tool_image(volume: Volume) -> None:
    volume.backup(toolImage="some/dumpling", tableFilter=[])
    volume.export(tls=Tls(client=True, skip_client_ca=True))
    [command] = volume.tools.commands
    assert "/var/lib/dumpling-bin/dumpling" == command[0]
    system = "mysql|test|INFORMATION_SCHEMA|PERFORMANCE_SCHEMA|METRICS_SCHEMA|INSPECTION_SCHEMA"
    filters = ["--filter", "*.*", "--filter", f"!/^({system})$/.*"]
    assert [*filters, "--threads=16", "--rows=10000"] == list(command[5:11])
    assert ["--cert=/var/lib/tidb-client-tls/tls.crt", "--key=/var/lib/tidb-client-tls/tls.key"] == list(command[11:])


def test_an_older_dumpling_gets_the_password_as_an_argument_only_if_that_is_allowed(volume: Volume) -> None:
    volume.tools = Tools(reads_variable=False)
    volume.backup()
    reason, message = failed(volume, volume.export)
    assert "DumpTidbClusterFailed" == reason
    assert f"allow it by the variable {ALLOWED}=true in spec.env" in message
    volume.world.environ[ALLOWED] = "true"
    volume.export()
    [command] = volume.tools.commands
    assert f"--password={PASSWORD}" == command[-1]


def test_without_a_password_dumplings_help_is_not_read(volume: Volume) -> None:
    volume.tools = Tools(reads_variable=False)
    del volume.world.environ["BACKUP_MANAGER_PASSWORD"]
    volume.backup()
    volume.export()
    assert "Complete" == volume.world.status(BACKUPS)["phase"]


@pytest.mark.parametrize(
    ("break_it", "reason", "says"),
    [
        (lambda v: setattr(v.tools, "code", 2), "DumpTidbClusterFailed", "Dumpling ended with exit code 2: cannot"),
        (lambda v: v.tools.files.update(metadata="Finished dump at"), "GetCommitTsFailed", "no line with Pos"),
        (lambda v: setattr(v.world.storage, "fail", failing("upload")), "BackupDataToRemoteFailed", "bucket/some"),
        (lambda v: setattr(v.world.storage, "fail", failing("write")), "BackupDataToRemoteFailed", "bucket/some"),
        (lambda v: setattr(v.world.tidb, "fail", {("set", 1)}), "SetTikvGCLifeTimeFailed", "set failed"),
    ],
)
@pytest.mark.rule("backup-7.9")
def test_reasons_of_failed_exports(volume: Volume, break_it: Any, reason: str, says: str) -> None:
    break_it(volume)
    volume.backup()
    found, message = failed(volume, volume.export)
    assert reason == found
    assert says in message
    assert "10m0s" == volume.world.tidb.value


@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        ({"s3": None, "azblob": {"container": "c"}}, {"storage_type": "azblob"}, "UnsupportedStorageType"),
        ({}, {"storage_type": "gcs"}, "UnsupportedStorageType"),
        ({"s3": None}, {}, "UnsupportedStorageType"),
        (
            {"s3": {"provider": "aws", "bucket": "b", "options": ["--dry-run"]}},
            {},
            "BackupDataToRemoteFailed",
        ),
        ({"s3": {"provider": "aws", "bucket": "b", "prefix": "a/../../x"}}, {}, "DumpTidbClusterFailed"),
    ],
)
@pytest.mark.rule("backup-7.9")
def test_rejects_an_unusable_target_before_the_export(volume: Volume, spec: Json, options: Json, reason: str) -> None:
    volume.backup(**spec)
    assert reason == failed(volume, lambda: volume.export(**options))[0]
    assert [] == volume.tools.commands


def test_a_backup_with_br_is_not_an_export(volume: Volume) -> None:
    volume.world.backup()
    with pytest.raises(Unusable, match=r"an export needs spec\.from, and no spec\.br"):
        volume.export()


def test_two_exports_of_one_second_have_two_archives(volume: Volume) -> None:
    now = volume.world.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    volume.world.storage.objects[f"backup-{now}.tgz"] = b"another's"
    volume.backup()
    volume.export()
    assert b"another's" == volume.world.storage.objects[f"backup-{now}.tgz"]
    assert 2 == sum(name.endswith(".tgz") for name in volume.world.storage.objects)


@pytest.mark.rule("backup-7.9")
def test_an_import_loads_the_archive_and_cleans_up(volume: Volume) -> None:
    volume.world.storage.objects[NAME_OF_ARCHIVE] = archive_of(FILES)
    volume.restore(tableFilter=["a.*"])
    volume.bring_in(tls=Tls(client=True))
    assert ["Running", "Complete"] == volume.world.conditions(RESTORES)
    assert "449000000000" == volume.world.status(RESTORES)["commitTs"]
    assert [dict(sorted(FILES.items()))] == volume.tools.imported
    assert [] == volume.left()
    [command] = volume.tools.commands
    assert command[1].startswith("--config=")
    source = volume.directory / "bucket/some/prefix" / NAME_OF_ARCHIVE.removesuffix(".tgz")
    certificates = [f"--{name}=/var/lib/tidb-client-tls/{file}" for name, file in TLS.items()]
    words = ["--status-addr=0.0.0.0:8289", "--backend=tidb", "--server-mode=false", "--log-file=-"]
    words += ["--tidb-user=root", "--tidb-host=tidb", f"--d={source}", "--tidb-port=4000", "-f", "a.*", *certificates]
    assert ["/tidb-lightning", command[1], *words] == list(command)
    assert f'password = "{PASSWORD}"' in volume.tools.configs[0]


@pytest.mark.parametrize("top", ["", "./", "/"])
def test_an_archive_of_files_without_a_directory_is_imported_as_well(volume: Volume, top: str) -> None:
    volume.world.storage.objects[NAME_OF_ARCHIVE] = archive_of(FILES, top=top)
    volume.restore()
    volume.bring_in()
    assert [dict(sorted(FILES.items()))] == volume.tools.imported


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (None, "DownloadBackupDataFailed", "it is not there; correct the path of the archive"),
        (b"no archive", "UnarchiveBackupDataFailed", "backup-1970"),
        (archive_of(FILES)[:-20], "UnarchiveBackupDataFailed", "backup-1970"),
        (archive_of({"../../evil": "x"}), "UnarchiveBackupDataFailed", "evil"),
        (archive_of({"a.sql": "x"}), "GetCommitTsFailed", "metadata cannot be read"),
    ],
    ids=["missing", "nonsense", "cut off", "leads elsewhere", "no dump"],
)
@pytest.mark.rule("backup-7.9")
def test_reasons_of_failed_imports(volume: Volume, content: bytes | None, reason: str, says: str) -> None:
    if content is not None:
        volume.world.storage.objects[NAME_OF_ARCHIVE] = content
    volume.restore()
    found, message = failed(volume, volume.bring_in)
    assert reason == found
    assert says in message
    assert not (volume.directory.parent / "evil").exists()


@pytest.mark.rule("backup-7.9")
def test_the_message_is_the_error_of_lightning(volume: Volume) -> None:
    volume.tools.code = 1
    volume.world.storage.objects[NAME_OF_ARCHIVE] = archive_of(FILES)
    volume.restore()
    reason, message = failed(volume, volume.bring_in)
    assert ("LoaderBackupDataFailed", "TiDB Lightning ended with exit code 1: cannot go on") == (reason, message)
    assert [] == volume.left()


@pytest.mark.parametrize("path", ["gcs://bucket/a.tgz", "s3://bucket", "s3://bucket/../../a.tgz"])
def test_rejects_a_path_outside_the_spec(volume: Volume, path: str) -> None:
    volume.restore()
    assert "DownloadBackupDataFailed" == failed(volume, lambda: volume.bring_in(path))[0]


def test_rejects_links_and_devices_in_an_archive(volume: Volume) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("any/link")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    volume.world.storage.objects[NAME_OF_ARCHIVE] = buffer.getvalue()
    volume.restore()
    assert "'any/link' is neither a file nor a directory" in failed(volume, volume.bring_in)[1]


def test_a_signal_while_bytes_are_copied_leaves_the_rest_to_another_pod(volume: Volume) -> None:
    volume.backup()
    stop = Stop()
    volume.world.storage.fail = lambda verb: stop.set() if verb == "size" else None
    options = ExportOptions(NAMESPACE, NAME, storage_type="s3")
    with pytest.raises(Stopped):
        run_export(options, replace(volume.outside, stop=stop))
    assert "Failed" not in volume.world.conditions(BACKUPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s3", "gcs"])
@pytest.mark.rule("backup-7.9")
def test_imports_an_export_from_a_real_server(volume: Volume, servers: Start, name: str) -> None:
    server = servers(name)
    place = server.make_bucket(f"exports-{name}")
    volume.world.environ |= server.environ
    # incompressible, so that the upload has several parts
    digests = (sha256(number.to_bytes(4, "big")).hexdigest() for number in range(240_000))
    volume.tools.files["shop.orders.sql"] = "".join(digests)
    spec: Json = {"bucket": place.bucket, "prefix": "p"}
    if name == "s3":
        spec |= {"provider": "ceph", "endpoint": place.endpoint, "options": ["--s3-chunk-size=5M"]}
        storages: Json = {"s3": spec}
    else:
        storages = {"s3": None, "gcs": spec | {"projectId": "id"}}
    outside = replace(volume.outside, open_storage=lambda at, environ, bulk: open_storage(at, environ, bulk=bulk))
    volume.backup(**storages)
    run_export(ExportOptions(NAMESPACE, NAME, storage_type=name), outside)
    path = volume.world.status(BACKUPS)["backupPath"]
    volume.restore(**storages)
    run_import(ImportOptions(NAMESPACE, NAME, backup_path=path), outside)
    assert [dict(sorted(volume.tools.files.items()))] == volume.tools.imported
    assert "Complete" == volume.world.status(RESTORES)["phase"]
    assert [] == volume.left()
