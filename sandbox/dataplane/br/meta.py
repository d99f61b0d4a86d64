"""`backupmeta` (brpb.BackupMeta) and the files that it lists, as bytes."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ports.protobuf import NoMessage, fields, message
from sandbox.dataplane.tables import Table

NAME = "backupmeta"

_CLUSTER_ID, _FILES, _START, _END, _SCHEMAS, _SIZE = 1, 4, 5, 6, 7, 25
_FILE_NAME, _SHA256, _START_KEY, _END_KEY, _TOTAL_KVS, _FILE_SIZE = 1, 2, 3, 4, 8, 11
_DB, _TABLE = 1, 2


@dataclass(frozen=True, slots=True)
class File:
    """A file: its name below the storage's prefix, its checksum, and its table."""

    name: str
    sha256: bytes
    size: int
    table: int


@dataclass(frozen=True, slots=True)
class Meta:
    """A backup. `schemas` excludes schemas of which only tables were saved; `end` is its TSO."""

    cluster: int
    end: int
    schemas: tuple[str, ...]
    tables: tuple[Table, ...]
    files: tuple[File, ...]

    def encode(self) -> bytes:
        """Encode as protobuf."""
        dbs = [(_SCHEMAS, message([(_DB, json.dumps({"db_name": each}).encode())])) for each in self.schemas]
        tables = [(_SCHEMAS, message([(_DB, _db(table)), (_TABLE, _told(table))])) for table in self.tables]
        files = [(_FILES, _file(file)) for file in self.files]
        size = sum(file.size for file in self.files)
        numbers = [(_END, self.end), (_SIZE, size)]
        return message([(_CLUSTER_ID, self.cluster), *files, *numbers, *dbs, *tables])


def decode(content: bytes) -> Meta:
    """Decode a message. Raises ValueError if it is malformed."""
    try:
        found = _grouped(content)
        (cluster,), (end,) = found[_CLUSTER_ID], found[_END]
        saved = [_schema(bytes(each)) for each in found.get(_SCHEMAS, ())]
        files = tuple(_file_of(bytes(each)) for each in found.get(_FILES, ()))
    except (NoMessage, LookupError, TypeError) as error:
        raise ValueError(f"backupmeta is incomplete: {error}") from error
    schemas = tuple(each for each in saved if isinstance(each, str))
    tables = tuple(table for table in saved if isinstance(table, Table))
    return Meta(int(cluster), int(end), schemas, tables, files)


def start_version(content: bytes) -> int:
    """The start of a log backup, from its `backupmeta`. Raises ValueError."""
    try:
        (start,) = _grouped(content)[_START]
    except (NoMessage, LookupError, ValueError) as error:
        raise ValueError(f"it does not belong to a log backup: {error}") from error
    return int(start)


def _grouped(content: bytes) -> dict[int, list[Any]]:
    """The values of a message's fields, by number. Raises NoMessage."""
    found: dict[int, list[Any]] = {}
    for number, value in fields(content):
        found.setdefault(number, []).append(value)
    return found


def _schema(content: bytes) -> str | Table:
    """A schema by name, or a table."""
    parts = _grouped(content)
    schema: str = json.loads(parts[_DB][0])["db_name"]
    if _TABLE not in parts:
        return schema
    told = json.loads(parts[_TABLE][0])
    return Table(schema, told["name"], told["id"], tuple(told["columns"]))


def _file_of(content: bytes) -> File:
    parts = _grouped(content)
    table = int.from_bytes(parts[_START_KEY][0][1:9], "big")
    return File(parts[_FILE_NAME][0].decode(), parts[_SHA256][0], parts[_FILE_SIZE][0], table)


def pack(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode keys and values as the content of a file."""
    return message([(1, part) for pair in pairs for part in pair])


def unpack(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values in a file."""
    parts = [value for _, value in fields(content) if isinstance(value, bytes)]
    return zip(parts[::2], parts[1::2], strict=True)


def sha256(content: bytes) -> bytes:
    """The checksum of a file."""
    return hashlib.sha256(content).digest()


def _db(table: Table) -> bytes:
    return json.dumps({"db_name": table.schema}).encode()


def _told(table: Table) -> bytes:
    return json.dumps({"id": table.id, "name": table.name, "columns": table.columns}).encode()


def _file(file: File) -> bytes:
    start, end = (b"t" + number.to_bytes(8, "big") for number in (file.table, file.table + 1))
    return message(
        [
            (_FILE_NAME, file.name.encode()),
            (_SHA256, file.sha256),
            (_START_KEY, start),
            (_END_KEY, end),
            (_FILE_SIZE, file.size),
        ]
    )
