"""Object storage as an argument: list with sizes, read, write, delete, whole or in parts.

`open_storage` creates a client.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import obstore
from obstore.exceptions import InvalidPathError
from obstore.store import ObjectStore as Library

from backup_manager.storage.answers import LIBRARY_ERRORS, error_from
from backup_manager.storage.connecting import connect
from backup_manager.storage.errors import BadLocation, ObjectMissing, StorageError
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.parts import Parts

PAGE = 1000
"""The default number of objects per page of a list."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: `key` without the location's prefix, `size` in bytes."""

    key: str
    size: int


class Storage(Protocol):
    """The objects below one prefix. Thread-safe. Every method raises StorageError."""

    @property
    def location(self) -> Location:
        """The location of the objects."""

    @property
    def batch(self) -> int:
        """The recommended number of keys per call of `delete`."""

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        """All objects, `size` per page; only one page is in memory."""

    def size(self, key: str) -> int | None:
        """An object's size in bytes; None if it does not exist."""

    def read(self, key: str) -> bytes:
        """An object's content, whole. Raises ObjectMissing."""

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        """An object's content in parts. Raises ObjectMissing, also if the object is replaced meanwhile."""

    def write(self, key: str, content: bytes) -> None:
        """Write an object atomically, replacing an existing one."""

    def upload(self, key: str, chunks: Iterable[bytes], parts: Parts) -> None:
        """Like `write`, from a stream; an exception in `chunks` leaves no object."""

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; missing ones are not an error."""


_BATCH = {Kind.S3: 1000, Kind.AZURE: 256, Kind.GCS: 100, Kind.LOCAL: 100}
"""The number of keys in a request; if each object is a request, the library sends ten concurrently."""


def open_storage(location: Location, environ: Mapping[str, str], *, bulk: bool = True) -> Storage:
    """A client of the objects at a location; sends nothing yet. `environ` has the credentials.

    Without `bulk` each object is deleted by its own request, for services without bulk deletion. Raises BadLocation,
    BadCredentials, BucketMissing.
    """
    batch = _BATCH[location.kind if bulk else Kind.GCS]
    return _Bucket(location, connect(location, environ, bulk=bulk), batch)


class _Bucket:
    """Implements `Storage` over the library's store of the whole bucket."""

    def __init__(self, location: Location, library: Library, batch: int) -> None:
        self.location = location
        self.batch = batch
        self._library = library
        self._below = f"{location.prefix}/" if location.prefix else ""
        self._inside = _inside(location.bucket) if location.kind is Kind.LOCAL else _anywhere

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        """All pages; the prefix itself as an object (a folder of a console) is not among the objects below it."""
        skip = len(self._below)
        try:
            for page in obstore.list(self._library, prefix=self.location.prefix or None, chunk_size=size):
                inside = (each for each in page if self._inside(each["path"]))
                yield [StoredObject(key, each["size"]) for each in inside if (key := each["path"][skip:])]
        except InvalidPathError as error:
            raise BadLocation("list", self.location, _unusable(error)) from None
        except LIBRARY_ERRORS as error:
            raise error_from(error, "list", _LIST[self.location.kind], self.location) from None

    def size(self, key: str) -> int | None:
        try:
            return obstore.head(self._library, self._path(key))["size"]
        except LIBRARY_ERRORS as error:
            meaning = self._read_error(error, key)
            if isinstance(meaning, ObjectMissing):
                return None
            raise meaning from None

    def read(self, key: str) -> bytes:
        try:
            return obstore.get(self._library, self._path(key)).bytes().to_bytes()
        except LIBRARY_ERRORS as error:
            raise self._read_error(error, key) from None

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        path = self._path(key)
        try:
            there = obstore.head(self._library, path)
            for start in range(0, there["size"], parts.size):
                end = min(start + parts.size, there["size"])
                found = obstore.get(self._library, path, options={"range": (start, end)})
                # not every service supports If-Match
                if found.meta["e_tag"] != there["e_tag"]:
                    raise StorageError(f"read {key} in", self.location, "another object took its place meanwhile")
                yield found.bytes().to_bytes()
        except LIBRARY_ERRORS as error:
            raise self._read_error(error, key) from None

    def _read_error(self, error: Exception, key: str) -> Exception:
        return error_from(error, f"read {key} in", _READ[self.location.kind], self.location)

    def write(self, key: str, content: bytes) -> None:
        self._writing(key, lambda: obstore.put(self._library, self._path(key), content))

    def upload(self, key: str, chunks: Iterable[bytes], parts: Parts) -> None:
        """Like `write`, from a stream. A writer that is not closed leaves no object."""
        writer = obstore.open_writer(
            self._library, self._path(key), buffer_size=parts.size, max_concurrency=parts.at_once
        )
        for chunk in chunks:
            self._writing(key, functools.partial(writer.write, chunk))
        self._writing(key, writer.close)

    def _writing(self, key: str, work: Callable[[], object]) -> None:
        try:
            work()
        except LIBRARY_ERRORS as error:
            raise self._write_error(error, key) from None

    def _write_error(self, error: Exception, key: str) -> Exception:
        return error_from(error, f"write {key} to", _WRITE[self.location.kind], self.location)

    def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        try:
            obstore.delete(self._library, paths)
        except FileNotFoundError as error:
            # a missing bucket looks like a missing object
            if not isinstance(self._delete_error(error), ObjectMissing):
                raise self._delete_error(error) from None
            self._delete_singly(paths)
        except LIBRARY_ERRORS as error:
            raise self._delete_error(error) from None

    def _delete_singly(self, paths: Sequence[str]) -> None:
        """Delete one by one, so that a concurrent deletion or a lost answer does not affect the rest."""
        for path in paths:
            try:
                obstore.delete(self._library, path)
            except LIBRARY_ERRORS as error:
                if not isinstance(error, FileNotFoundError):
                    raise self._delete_error(error) from None

    def _delete_error(self, error: Exception) -> Exception:
        return error_from(error, "delete from", _DELETE[self.location.kind], self.location)

    def _path(self, key: str) -> str:
        """The key in the bucket. Raises BadLocation for a key that no list can have returned."""
        if not key or any(part in ("", ".", "..") for part in key.split("/")):
            raise BadLocation("use", self.location, f"{key!r} is no object's name")
        return self._below + key


def _unusable(error: InvalidPathError) -> str:
    name = match[1] if (match := _NAME.search(str(error))) else "one"
    return f"an object's name has an empty part, `.` or `..`: {name}; rename or remove it with your provider's tools"


_NAME = re.compile(r'Path ("[^"\n]*")')
_LIST = {Kind.S3: "s3:ListBucket", Kind.GCS: "storage.objects.list", Kind.AZURE: "list", Kind.LOCAL: "reading"}
_READ = {Kind.S3: "s3:GetObject", Kind.GCS: "storage.objects.get", Kind.AZURE: "read", Kind.LOCAL: "reading"}
_WRITE = {Kind.S3: "s3:PutObject", Kind.GCS: "storage.objects.create", Kind.AZURE: "write", Kind.LOCAL: "writing"}
_DELETE = {Kind.S3: "s3:DeleteObject", Kind.GCS: "storage.objects.delete", Kind.AZURE: "delete", Kind.LOCAL: "writing"}


def _anywhere(_path: str) -> bool:
    return True


def _inside(root: str) -> Callable[[str], bool]:
    """True if a file is on the volume itself: the library follows links, whose targets do not belong to the backup."""
    top = os.path.realpath(root)

    @functools.lru_cache(maxsize=PAGE)
    def is_inside(directory: str) -> bool:
        return os.path.realpath(directory) == directory

    return lambda path: is_inside(os.path.dirname(os.path.join(top, path)))
