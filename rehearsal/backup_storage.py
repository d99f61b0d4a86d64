"""Storage for `backup-manager` and BR in the sandbox: its volumes, its own buckets, or real ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote

from backup_manager.storage.errors import AccessDenied, ObjectMissing, StorageError
from backup_manager.storage.location import Kind, Location, default_path_style, split
from backup_manager.storage.objects import PAGE, Storage, StoredObject, open_storage
from backup_manager.storage.parts import Parts
from sandbox.dataplane.br.request import Request
from sandbox.dataplane.br.run import Files
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.disk_files import DiskFiles
from sandbox.dataplane.processes import Disk

SANDBOX_S3 = "http://s3.sandbox"
"""The endpoint of the sandbox's own buckets."""


def location(request: Request) -> Location:
    """The location in BR's arguments."""
    url, _, query = request.option("storage").partition("?")
    scheme, _, escaped = url.partition("://")
    kind, path = Kind(scheme), unquote(escaped)
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


def files_for(request: Request, surroundings: Surroundings, environ: Mapping[str, str]) -> Files:
    """The files at the location in BR's arguments. Raises OSError."""
    place = location(request)
    if (found := _disk_files(surroundings, place)) is not None:
        return found
    with _as_os_errors():
        return StorageFiles(open_storage(place, environ))


def storage_at(surroundings: Surroundings, location: Location, environ: Mapping[str, str], *, bulk: bool) -> Storage:
    """Open a storage. Raises StorageError."""
    files = _disk_files(surroundings, location)
    return open_storage(location, environ, bulk=bulk) if files is None else _DiskStorage(location, files)


def _disk_files(surroundings: Surroundings, location: Location) -> DiskFiles | None:
    """The files of a location in the sandbox; None for a real one. Raises FileNotFoundError."""
    if location.kind is Kind.LOCAL:
        path = f"/{'/'.join(part for part in location.path.split('/') if part)}"
        found = surroundings.launch.on_disk(path)
        # files outside volumes vanish with the container
        disk, prefix = found or (Disk(""), path.strip("/"))
        return DiskFiles(disk, prefix, surroundings)
    if location.kind is Kind.S3 and location.endpoint.rstrip("/") == SANDBOX_S3:
        return DiskFiles(surroundings.disk(f"s3://{location.bucket}"), location.prefix, surroundings)
    return None


class _DiskStorage:
    """Implements `Storage` on the sandbox's files."""

    batch = 1000

    def __init__(self, location: Location, files: DiskFiles) -> None:
        self.location = location
        self._files = files

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        with self._refusing("list"):
            there = [StoredObject(key, count) for key, count in self._files.sizes().items()]
        for start in range(0, len(there), size):
            yield there[start : start + size]

    def size(self, key: str) -> int | None:
        with self._refusing("list"):
            return self._files.sizes().get(key)

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        content = self.read(key)
        for start in range(0, len(content), parts.size):
            yield content[start : start + parts.size]

    def upload(self, key: str, chunks: Iterable[bytes], parts: Parts) -> None:  # noqa: ARG002  (in memory anyway)
        self.write(key, b"".join(chunks))

    def read(self, key: str) -> bytes:
        with self._refusing(f"read {key} in"):
            return self._files.read(key)

    def write(self, key: str, content: bytes) -> None:
        with self._refusing(f"write {key} to"):
            self._files.write(key, content)

    def delete(self, keys: Sequence[str]) -> None:
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
    """Implements `Files` on real object storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def names(self) -> Sequence[str]:
        with _as_os_errors():
            return [stored.key for page in self._storage.pages() for stored in page]

    def read(self, name: str) -> bytes:
        with _as_os_errors():
            return self._storage.read(name)

    def write(self, name: str, content: bytes) -> None:
        with _as_os_errors():
            self._storage.write(name, content)

    def delete(self, names: Sequence[str]) -> None:
        with _as_os_errors():
            self._storage.delete(names)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise OSError(str(error)) from error
