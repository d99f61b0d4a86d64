"""A pod is killed before or after any of its external calls; the next pod completes the work.

After the kill, no further call gets out, as after kill -9.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from backup_manager.backup import BackupOptions, run_backup
from backup_manager.child_process import OnLine
from backup_manager.clean import CleanOptions, run_clean
from backup_manager.database import Database, Login
from backup_manager.exports import ExportOptions, run_export
from backup_manager.gc_life_time import BEFORE
from backup_manager.imports import ImportOptions, run_import
from backup_manager.outside import Outside
from backup_manager.restore import RestoreOptions, run_restore
from backup_manager.storage.location import Location
from backup_manager.storage.objects import PAGE, Storage, StoredObject
from backup_manager.storage.parts import Parts
from kube.client import Client
from kube.objects import Json, Object
from kube.resources import BACKUPS, RESTORES, Resource
from ports.stopping import Stop
from tests.backup_manager.dumping import FILES, Tools
from tests.backup_manager.test_exports import archive_of
from tests.backup_manager.worlds import NAME, NAMESPACE, World, meta_bytes

_T = TypeVar("_T")


class Killed(BaseException):
    """Raised at the kill; no handler of the job may catch it."""


class Life:
    """Counts calls; the `at`th one kills, before or `after` its effect, and every later one kills as well."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.calls = 0
        self._at = at
        self._after = after

    def call(self, work: Callable[[], _T]) -> _T:
        self.calls += 1
        if self.calls > self._at or (self.calls == self._at and not self._after):
            raise Killed
        done = work()
        if self.calls == self._at:
            raise Killed
        return done


class MortalClient(Client):
    def __init__(self, inner: Client, life: Life) -> None:
        self._inner = inner
        self._life = life

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return self._life.call(lambda: self._inner.get(resource, name, namespace))

    def replace(self, resource: Resource, name: str, namespace: str, body: Json, *, subresource: str = "") -> Object:
        return self._life.call(lambda: self._inner.replace(resource, name, namespace, body))


class MortalDatabase:
    def __init__(self, inner: Database, life: Life) -> None:
        self._inner = inner
        self._life = life

    def ping(self) -> None:
        self._life.call(self._inner.ping)

    def variable(self, name: str) -> str:
        return self._life.call(lambda: self._inner.variable(name))

    def set_variable(self, name: str, value: str) -> None:
        self._life.call(lambda: self._inner.set_variable(name, value))


class MortalStorage:
    def __init__(self, inner: Storage, life: Life) -> None:
        self._inner = inner
        self._life = life
        self.location = inner.location
        self.batch = inner.batch

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        yield from self._life.call(lambda: list(self._inner.pages(size)))

    def read(self, key: str) -> bytes:
        return self._life.call(lambda: self._inner.read(key))

    def size(self, key: str) -> int | None:
        return self._life.call(lambda: self._inner.size(key))

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        for chunk in self._inner.download(key, parts):
            yield self._life.call(lambda chunk=chunk: chunk)  # type: ignore[misc]

    def upload(self, key: str, chunks: Iterable[bytes], parts: Parts) -> None:
        self._life.call(lambda: self._inner.upload(key, chunks, parts))

    def write(self, key: str, content: bytes) -> None:
        self._life.call(lambda: self._inner.write(key, content))

    def delete(self, keys: Sequence[str]) -> None:
        self._life.call(lambda: self._inner.delete(keys))


class Br:
    """Saves two files and then `backupmeta`, refuses a place that has one, and dies with the pod between any two."""

    def __init__(self, world: World, life: Life | None = None) -> None:
        self._objects = world.storage.objects
        self._life = life or Life(1 << 30, after=False)

    def run(self, command: Sequence[str], _environ: Mapping[str, str], on_line: OnLine, _stop: Stop) -> int:
        names = ["1.sst", "2.sst", "backupmeta"] if "backup" in command else []
        if names and "backupmeta" in self._objects:
            on_line("[ERROR] backup meta file exists in destination", False)
            return 1
        for number, name in enumerate(names):
            on_line(f'[progress] [step="Full Backup"] [progress={number * 50}%]', False)
            self._life.call(lambda name=name: self._objects.__setitem__(name, meta_bytes()))  # type: ignore[misc]
        return 0


def mortal(world: World, life: Life) -> Outside:
    outside = world.outside()

    def open_storage(location: Location, environ: Mapping[str, str], bulk: bool) -> Storage:
        return MortalStorage(outside.open_storage(location, environ, bulk), life)

    def connect(login: Login) -> Database:
        return MortalDatabase(outside.connect(login), life)

    client = MortalClient(world.client, life)
    return replace(outside, client=client, open_storage=open_storage, connect=connect, launcher=Br(world, life))


Work = Callable[[Outside], None]


def survive(make: Callable[[World], None], work: Work, check: Callable[[World], None]) -> int:
    """Kill the work at each of its calls in turn, complete it in a second pod, and check; return the number
    of kills.
    """
    kills = 0
    for after in (False, True):
        at = 0
        while True:
            at += 1
            world = World()
            make(world)
            try:
                work(mortal(world, Life(at, after=after)))
            except Killed:
                kills += 1
            else:
                check(world)
                break
            work(replace(world.outside(), launcher=Br(world)))
            check(world)
    return kills


def with_login(world: World) -> None:
    world.environ["BACKUP_MANAGER_PASSWORD"] = "password"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v8.5.0", "v5.4.0"])
def test_a_backup_killed_at_any_call_becomes_one_backup(version: str) -> None:
    def make(world: World) -> None:
        with_login(world)
        world.backup(**{"from": {"host": "tidb", "secretName": "s"}})

    def check(world: World) -> None:
        status = world.status(BACKUPS)
        assert ("Complete", "449000000000") == (status["phase"], status["commitTs"])
        assert {"1.sst", "2.sst", "backupmeta"} == world.storage.objects.keys() - {"backup-manager.probe"}
        assert "10m0s" == world.tidb.value
        assert BEFORE not in (world.read(BACKUPS)["metadata"].get("annotations") or {})

    options = BackupOptions(NAMESPACE, NAME, tikv_version=version)
    assert 40 < survive(make, lambda outside: run_backup(options, outside), check)


def test_a_restore_killed_at_any_call_is_completed_and_tidb_is_restored() -> None:
    def make(world: World) -> None:
        with_login(world)
        world.restore(to={"host": "tidb", "secretName": "s"})
        world.storage.objects["backupmeta"] = meta_bytes()

    def check(world: World) -> None:
        assert "Complete" == world.status(RESTORES)["phase"]
        assert "10m0s" == world.tidb.value
        assert BEFORE not in (world.read(RESTORES)["metadata"].get("annotations") or {})

    assert 30 < survive(make, lambda outside: run_restore(RestoreOptions(NAMESPACE, NAME), outside), check)


def test_a_deletion_killed_at_any_call_is_completed() -> None:
    def make(world: World) -> None:
        world.backup({"phase": "Complete", "backupPath": "s3://bucket/some/prefix"})
        world.storage.objects |= {f"{number}.sst": b"x" for number in range(30)}

    def check(world: World) -> None:
        assert {} == world.storage.objects
        assert "Clean" == world.status(BACKUPS)["phase"]

    assert 10 < survive(make, lambda outside: run_clean(CleanOptions(NAMESPACE, NAME), outside), check)


class MortalTools(Tools):
    """Dumpling and Lightning that die with the pod, Dumpling also between any two files."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def wrote(self, path: Path, content: str) -> None:
        self._life.call(lambda: path.write_text(content, encoding="utf-8"))

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:
        return self._life.call(lambda: super(MortalTools, self).run(command, environ, on_line, stop))


def survive_on(volume: Path, make: Callable[[World], None], work: Work, check: Callable[[World], None]) -> int:
    """Like `survive`, with a volume that outlives the pods."""
    kills = 0
    for after in (False, True):
        at = 0
        while True:
            at += 1
            world = World()
            make(world)
            life = Life(at, after=after)
            shutil.rmtree(volume, ignore_errors=True)
            volume.mkdir()
            try:
                work(replace(mortal(world, life), launcher=MortalTools(life), volume=volume))
            except Killed:
                kills += 1
            else:
                check(world)
                break
            work(replace(world.outside(), launcher=Tools(), volume=volume))
            check(world)
    return kills


@pytest.mark.slow
def test_an_export_killed_at_any_call_becomes_one_archive(tmp_path: Path) -> None:
    volume = tmp_path / "volume"

    def make(world: World) -> None:
        with_login(world)
        world.backup(**{"br": None, "from": {"host": "tidb", "secretName": "s"}})

    def check(world: World) -> None:
        status = world.status(BACKUPS)
        assert ("Complete", "449000000000") == (status["phase"], status["commitTs"])
        [archive] = world.storage.objects.keys() - {"backup-manager.probe"}
        assert f"s3://bucket/some/prefix/{archive}" == status["backupPath"]
        assert len(world.storage.objects[archive]) == status["backupSize"]
        assert "10m0s" == world.tidb.value
        assert BEFORE not in (world.read(BACKUPS)["metadata"].get("annotations") or {})
        assert [] == [path for path in volume.rglob("*") if path.is_file()]

    options = ExportOptions(NAMESPACE, NAME, storage_type="s3")
    assert 30 < survive_on(volume, make, lambda outside: run_export(options, outside), check)


def test_an_import_killed_at_any_call_is_completed(tmp_path: Path) -> None:
    volume = tmp_path / "volume"

    def make(world: World) -> None:
        with_login(world)
        world.restore(br=None, to={"host": "tidb", "secretName": "s"})
        world.storage.objects["backup.tgz"] = archive_of(FILES)

    def check(world: World) -> None:
        assert ("Complete", "449000000000") == tuple(world.status(RESTORES)[name] for name in ("phase", "commitTs"))
        assert [] == [path for path in volume.rglob("*") if path.is_file()]

    options = ImportOptions(NAMESPACE, NAME, backup_path="s3://bucket/some/prefix/backup.tgz")
    assert 8 < survive_on(volume, make, lambda outside: run_import(options, outside), check)
