"""`backupmeta` (brpb.BackupMeta) and the files that it names, as bytes."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sandbox.dataplane.tables import Table
from sandbox.wire import fields, message

NAME = "backupmeta"

_CLUSTER_ID, _FILES, _START, _END, _SCHEMAS, _SIZE = 1, 4, 5, 6, 7, 25
_FILE_NAME, _SHA256, _START_KEY, _END_KEY, _TOTAL_KVS, _FILE_SIZE = 1, 2, 3, 4, 8, 11
_DB, _TABLE = 1, 2


@dataclass(frozen=True, slots=True)
class File:
    """One file: its name below the storage's prefix, and what it must have in it, of which table."""

    name: str
    sha256: bytes
    size: int
    table: int


@dataclass(frozen=True, slots=True)
class Meta:
    """A backup. `schemas` are without those of which only tables were saved; `end` is its TSO."""

    cluster: int
    end: int
    schemas: tuple[str, ...]
    tables: tuple[Table, ...]
    files: tuple[File, ...]

    def encode(self) -> bytes:
        """The message."""
        dbs = [(_SCHEMAS, message([(_DB, json.dumps({"db_name": each}).encode())])) for each in self.schemas]
        tables = [(_SCHEMAS, message([(_DB, _db(each)), (_TABLE, _told(each))])) for each in self.tables]
        files = [(_FILES, _file(each)) for each in self.files]
        size = sum(each.size for each in self.files)
        numbers = [(_END, self.end), (_SIZE, size)]
        return message([(_CLUSTER_ID, self.cluster), *files, *numbers, *dbs, *tables])


def decode(content: bytes) -> Meta:
    """Read a message. Raises ValueError for what is none."""
    cluster = end = 0
    schemas: list[str] = []
    tables: list[Table] = []
    files: list[File] = []
    for number, value in fields(content):
        if number == _CLUSTER_ID:
            cluster = value
        elif number == _END:
            end = value
        elif number == _FILES:
            parts = dict(fields(value))
            table = int.from_bytes(parts[_START_KEY][1:9], "big")
            files.append(File(parts[_FILE_NAME].decode(), parts[_SHA256], parts[_FILE_SIZE], table))
        elif number == _SCHEMAS:
            parts = dict(fields(value))
            schema = json.loads(parts[_DB])["db_name"]
            if _TABLE in parts:
                told = json.loads(parts[_TABLE])
                tables.append(Table(schema, told["name"], told["id"], tuple(told["columns"])))
            else:
                schemas.append(schema)
    if not end:
        raise ValueError("backupmeta has no end version")
    return Meta(cluster, end, tuple(schemas), tuple(tables), tuple(files))


def pack(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Keys and values as the content of a file."""
    return message([(1, part) for pair in pairs for part in pair])


def unpack(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a file. Raises ValueError for a broken one."""
    parts = [value for _, value in fields(content)]
    return zip(parts[::2], parts[1::2], strict=True)


def sha256(content: bytes) -> bytes:
    """What a file is known by."""
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
