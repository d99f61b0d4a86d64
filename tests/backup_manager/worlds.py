"""A Kubernetes API with the CRDs, a scripted BR, storage in memory, a TiDB with one variable."""

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backup_manager.child_process import OnLine
from backup_manager.database import DatabaseError, Login
from backup_manager.outside import Outside
from backup_manager.storage.location import Location
from backup_manager.storage.objects import Storage
from kube.client import Client
from kube.objects import Json
from kube.resources import BACKUPS, COMPACT_BACKUPS, CUSTOM_RESOURCE_DEFINITIONS, RESTORES, Resource
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from sandbox.apiserver import ApiServer, InProcessTransport
from sandbox.world import load_crds
from tests.backup_manager.storage.fakes import Memory
from tests.backup_manager.storage.servers import CANARY

CRDS = Path(__file__).parents[2] / "manifests" / "crds"
NAMESPACE = "ns"
NAME = "demo"
ENVIRON = {"AWS_ACCESS_KEY_ID": "AKIA" + CANARY, "AWS_SECRET_ACCESS_KEY": CANARY, "PATH": "/bin"}


class PassingClock(FakeClock):
    """A clock on which waiting takes no real time."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        assert timeout is not None
        self.step(timeout)


def meta_bytes(start: int = 1, end: int = 449_000_000_000, size: int = 8_200_000) -> bytes:
    """A `backupmeta` as BR writes it, with one file and an unknown field."""
    file = _field(11, 5) + b"\x0a\x03sst"
    inner = b"\x22" + _varint(len(file)) + file
    return inner + _field(5, start) + (_field(6, end) if end else b"") + _field(25, size) + b"\x0d\x01\x02\x03\x04"


def message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A protobuf message."""
    return b"".join(
        _field(number, value) if isinstance(value, int) else _varint(number << 3 | 2) + _varint(len(value)) + value
        for number, value in fields
    )


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


Script = Callable[[OnLine, Stop], int]


@dataclass
class ScriptedLauncher:
    """Runs `script` in place of a program, and records the commands."""

    script: Script = lambda _on_line, _stop: 0
    commands: list[Sequence[str]] = field(default_factory=list)
    environs: list[Mapping[str, str]] = field(default_factory=list)

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:
        self.commands.append(command)
        self.environs.append(environ)
        return self.script(on_line, stop)


@dataclass
class Tidb:
    """A TiDB with one variable; `fail` has the failing calls, by name and number."""

    value: str = "10m0s"
    fail: set[tuple[str, int]] = field(default_factory=set)
    history: list[str] = field(default_factory=list)
    logins: list[Login] = field(default_factory=list)
    _calls: dict[str, int] = field(default_factory=dict)

    def connect(self, login: Login) -> "Tidb":
        self.logins.append(login)
        return self

    def ping(self) -> None:
        self._called("ping")

    def variable(self, name: str) -> str:
        self._called("variable")
        assert name == "tikv_gc_life_time"
        return self.value

    def set_variable(self, name: str, value: str) -> None:
        self._called("set")
        assert name == "tikv_gc_life_time"
        self.value = value
        self.history.append(value)

    def _called(self, what: str) -> None:
        self._calls[what] = self._calls.get(what, 0) + 1
        if (what, self._calls[what]) in self.fail:
            raise DatabaseError(f"{what} failed")


@functools.cache
def definitions() -> list[Json]:
    """The CRDs of Backup, Restore and CompactBackup."""
    return [
        crd
        for plural in ("backups", "restores", "compactbackups")
        for crd in load_crds(CRDS / f"pingcap.com_{plural}.yaml")
    ]


class World:
    """A job's outside."""

    def __init__(self) -> None:
        self.clock = PassingClock()
        self.server = ApiServer(self.clock, SeededRandomness(1))
        self.client = Client(InProcessTransport(self.server))
        for crd in definitions():
            self.client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
        self.client.create(Resource("", "v1", "namespaces", "Namespace", namespaced=False), _named("Namespace"))
        self.launcher = ScriptedLauncher()
        self.storage = Memory({})
        self.tidb = Tidb()
        self.opened: list[tuple[Location, bool]] = []
        self.environ: dict[str, str] = dict(ENVIRON)

    def outside(self, stop: Stop | None = None) -> Outside:
        return Outside(
            self.client, self.clock, self.launcher, self._open, self.tidb.connect, self.environ, stop or Stop()
        )

    def _open(self, location: Location, _environ: Mapping[str, str], bulk: bool) -> Storage:
        self.opened.append((location, bulk))
        self.storage.location = location
        return self.storage

    def backup(self, status: Json | None = None, **spec: Any) -> None:
        """Create a Backup to S3 by BR; `spec` changes or adds fields."""
        self._create(BACKUPS, spec, {"phase": "Scheduled"} if status is None else status)

    def restore(self, status: Json | None = None, **spec: Any) -> None:
        """Create a Restore from S3 by BR."""
        self._create(RESTORES, spec, {"phase": "Scheduled"} if status is None else status)

    def compact(self, status: Json | None = None, **spec: Any) -> None:
        """Create a CompactBackup of a day of a log in S3."""
        span = {"startTs": "1000", "endTs": "2000"}
        self._create(COMPACT_BACKUPS, span | spec, {"state": "Prepare"} if status is None else status)

    def _create(self, resource: Resource, spec: Json, status: Json) -> None:
        usual: Json = {
            "br": {"cluster": "basic", "clusterNamespace": "db"},
            "s3": {"provider": "aws", "bucket": "bucket", "prefix": "some/prefix", "region": "eu-west-1"},
        }
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {key: value for key, value in (usual | spec).items() if value is not None},
            "status": status,
        }
        self.client.create(resource, body, NAMESPACE)

    def read(self, resource: Resource) -> Json:
        return self.client.get(resource, NAME, NAMESPACE).decode()

    def status(self, resource: Resource) -> Json:
        found: Json = self.read(resource)["status"]
        return found

    def conditions(self, resource: Resource) -> list[str]:
        return [each["type"] for each in self.status(resource)["conditions"]]


def _named(kind: str) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": NAMESPACE}}


def printing(*lines: str, code: int = 0, then: Callable[[], None] | None = None) -> Script:
    """A program that prints lines to stdout, runs `then` and ends."""

    def script(on_line: OnLine, _stop: Stop) -> int:
        for line in lines:
            on_line(line, False)
        if then is not None:
            then()
        return code

    return script


def writing_meta(world: World, **fields: int) -> Callable[[], None]:
    """BR's last act: writes the file that `backupmeta` lists, and `backupmeta`."""
    return functools.partial(world.storage.objects.update, {"sst": b"12345", "backupmeta": meta_bytes(**fields)})
