"""`backup-manager` in the pods of the sandbox: our own code, in front of the simulated cluster instead of a real one.

Files are on the sandbox's volumes, or in a bucket of its own behind `SANDBOX_S3`; any other object storage is real.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qsl

from backup_manager.br_arguments import BR
from backup_manager.child_process import CannotStart, OnLine
from backup_manager.commands import job
from backup_manager.database import DatabaseError, Login
from backup_manager.flags import PROGRAM
from backup_manager.main import exit_code
from backup_manager.outside import Outside
from backup_manager.storage.errors import AccessDenied, ObjectMissing, StorageError
from backup_manager.storage.location import Kind, Location, default_path_style, split
from backup_manager.storage.objects import PAGE, Storage, StoredObject, open_storage
from backup_manager.storage.parts import Parts
from kube.client import Client
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.sql import SqlLogin, SqlRefused
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.dataplane.br.program import run_br
from sandbox.dataplane.br.request import Request
from sandbox.dataplane.br.run import Files
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.disk_files import DiskFiles
from sandbox.dataplane.processes import Disk
from sandbox.dataplane.tables import Rows
from sandbox.dataplane.tls import Certificate

SANDBOX_S3 = "http://s3.sandbox"
"""The endpoint of the buckets that the sandbox keeps itself."""


def backup_manager(surroundings: Surroundings) -> int:
    """The command of a pod; the exit code."""
    transport = RetryingTransport(
        surroundings.kubernetes, surroundings.clock, Throttle(Rate(), surroundings.clock), Stop()
    )
    outside = Outside(
        client=Client(transport, user_agent=PROGRAM),
        clock=surroundings.clock,
        launcher=_Launcher(surroundings),
        open_storage=lambda location, environ, bulk: _storage(surroundings, location, environ, bulk=bulk),
        connect=lambda login: _Tidb(surroundings, login),
        environ=surroundings.launch.env,
        stop=surroundings.stop,
    )
    arguments = surroundings.launch.command
    return exit_code(lambda: job(arguments)(outside), outside.environ, surroundings.say)


class _Launcher:
    """See `Launcher`: BR of the sandbox, in the same container."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:  # noqa: ARG002
        """See `Launcher`. What it prints is what `kubectl logs` shows."""
        program, *arguments = command
        if program != BR:
            raise CannotStart(f"cannot start {program}: the sandbox has BR alone")

        def say(line: str) -> None:
            self._surroundings.say(line)
            on_line(line, False)

        return run_br(arguments, self._surroundings, lambda request: self._files(request, environ), say)

    def _files(self, request: Request, environ: Mapping[str, str]) -> Files:
        """The place that `--storage` names. Raises OSError."""
        place = location(request)
        if (found := _disk_files(self._surroundings, place)) is not None:
            return found
        with _as_os_errors():
            return StorageFiles(open_storage(place, environ))


def location(request: Request) -> Location:
    """The place that BR was told."""
    url, _, query = request.option("storage").partition("?")
    scheme, _, path = url.partition("://")
    kind = Kind(scheme)
    if kind is Kind.LOCAL:
        return Location(kind, path)
    if kind is Kind.AZURE:
        of_account = dict(parse_qsl(query))
        return Location(
            kind,
            *split("", path),
            account=of_account.get("account-name", ""),
            sas_token=of_account.get("sas-token", ""),
        )
    flavour = request.option("s3.provider")
    return Location(
        kind,
        *split("", path),
        region=request.option("s3.region"),
        endpoint=request.option("s3.endpoint"),
        flavour=flavour,
        path_style=default_path_style(flavour),
    )


def _storage(surroundings: Surroundings, location: Location, environ: Mapping[str, str], *, bulk: bool) -> Storage:
    """See `Open`. Raises StorageError."""
    files = _disk_files(surroundings, location)
    return open_storage(location, environ, bulk=bulk) if files is None else _DiskStorage(location, files)


def _disk_files(surroundings: Surroundings, location: Location) -> DiskFiles | None:
    """The files of a location that is the sandbox's own; None for one that is real. Raises FileNotFoundError."""
    if location.kind is Kind.LOCAL:
        path = f"/{'/'.join(part for part in location.path.split('/') if part)}"
        found = surroundings.launch.on_disk(path)
        # what is on no volume is gone with the container
        disk, prefix = found or (Disk(""), path.strip("/"))
        return DiskFiles(disk, prefix, surroundings)
    if location.kind is Kind.S3 and location.endpoint.rstrip("/") == SANDBOX_S3:
        return DiskFiles(surroundings.disk(f"s3://{location.bucket}"), location.prefix, surroundings)
    return None


class _DiskStorage:
    """See `Storage`: the files of the sandbox."""

    batch = 1000

    def __init__(self, location: Location, files: DiskFiles) -> None:
        self.location = location
        self._files = files

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        """See `Storage`."""
        with self._refusing("list"):
            there = [StoredObject(key, count) for key, count in self._files.sizes().items()]
        for start in range(0, len(there), size):
            yield there[start : start + size]

    def size(self, key: str) -> int | None:
        """See `Storage`."""
        with self._refusing("list"):
            return self._files.sizes().get(key)

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        """See `Storage`."""
        content = self.read(key)
        for start in range(0, len(content), parts.size):
            yield content[start : start + parts.size]

    def upload(self, key: str, chunks: Iterable[bytes], parts: Parts) -> None:  # noqa: ARG002  (in memory anyway)
        """See `Storage`."""
        self.write(key, b"".join(chunks))

    def read(self, key: str) -> bytes:
        """See `Storage`."""
        with self._refusing(f"read {key} in"):
            return self._files.read(key)

    def write(self, key: str, content: bytes) -> None:
        """See `Storage`."""
        with self._refusing(f"write {key} to"):
            self._files.write(key, content)

    def delete(self, keys: Sequence[str]) -> None:
        """See `Storage`."""
        with self._refusing("delete from"):
            self._files.delete(keys)

    @contextmanager
    def _refusing(self, doing: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise ObjectMissing(doing, self.location, str(error)) from error
        except PermissionError as error:
            raise AccessDenied(doing, self.location, str(error)) from error
        except OSError as error:
            raise StorageError(doing, self.location, str(error)) from error


class StorageFiles:
    """See `Files`: real object storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def names(self) -> Sequence[str]:
        """See `Files`."""
        with _as_os_errors():
            return [each.key for page in self._storage.pages() for each in page]

    def read(self, name: str) -> bytes:
        """See `Files`."""
        with _as_os_errors():
            return self._storage.read(name)

    def write(self, name: str, content: bytes) -> None:
        """See `Files`."""
        with _as_os_errors():
            self._storage.write(name, content)

    def delete(self, names: Sequence[str]) -> None:
        """See `Files`."""
        with _as_os_errors():
            self._storage.delete(names)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise OSError(str(error)) from error


class _Tidb:
    """See `Database`: a TiDB of the sandbox, whose users have no passwords."""

    def __init__(self, surroundings: Surroundings, login: Login) -> None:
        self._surroundings = surroundings
        self._login = login

    def ping(self) -> None:
        """See `Database`."""
        self._ask([])

    def variable(self, name: str) -> str:
        """See `Database`."""
        _, *rows = self._ask([f"SELECT variable_value FROM mysql.tidb WHERE variable_name = '{name}'"])[0]  # noqa: S608
        if not rows:
            raise DatabaseError(f"{self._login}: mysql.tidb has no {name}")
        return rows[0][0]

    def set_variable(self, name: str, value: str) -> None:
        """See `Database`."""
        self._ask([f"UPDATE mysql.tidb SET variable_value = '{value}' WHERE variable_name = '{name}'"])  # noqa: S608

    def _ask(self, statements: Sequence[str]) -> list[Rows]:
        login = SqlLogin(self._login.host, self._login.port, self._login.user)
        ask: Callable[[], list[Rows]] = lambda: self._surroundings.sql.ask(login, statements, tls=self._tls())  # noqa: E731
        try:
            return self._surroundings.reach(ask)
        except (SqlRefused, TransportError) as error:
            raise DatabaseError(f"{self._login}: {error}") from error

    def _tls(self) -> Certificate | None:
        directory = self._login.tls
        if directory is None:
            return None
        ca, cert, key = (self._surroundings.launch.file(f"{directory}/{each}") or "" for each in _TLS_FILES)
        return Certificate(ca if self._login.verifies else "", cert, key, verifies=self._login.verifies)


_TLS_FILES = ("ca.crt", "tls.crt", "tls.key")
