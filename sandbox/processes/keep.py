"""A directory that keeps a sandbox: the objects of its API server, and the volumes of its real processes.

`objects.db` is an SQLite database with every object as last written, `volumes/` has a directory for each volume, and
`lock` is locked while processes of a sandbox may write. A second start is like a reboot of all nodes.
"""

import fcntl
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
import structlog

from kube.objects import Json
from sandbox.apiserver.storage import Change, Snapshot, Stored
from sandbox.processes.agent_client import Unavailable

_log = structlog.get_logger(__name__)

_FORMAT = 1
"""Grows with each change that an older program cannot read, or that cannot read what an older one wrote."""
_APPLICATION = 0x54694F70
_SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN;
CREATE TABLE IF NOT EXISTS objects (resource TEXT, key TEXT, version INTEGER, fields BLOB, tree BLOB,
                                    PRIMARY KEY (resource, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS version (number INTEGER);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
COMMIT;
"""


class Keep:
    """The journal of a storage, and a place for volumes. `wrote` and `follow` are called under the storage's lock."""

    def __init__(self, directory: Path) -> None:
        """Opens the directory, or creates it. Raises Unavailable if it is in use or of another format."""
        self.directory = directory
        self.volumes = directory.absolute() / "volumes"
        self._snapshot: Callable[[], Snapshot] | None = None
        self._is_behind = False
        _check_content(directory)
        try:
            self.volumes.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(directory)
        except OSError as error:
            raise Unavailable(f"can't write to {directory}: {error.strerror or error}; name another --keep") from None
        try:
            self._database = _opened(directory)
        except BaseException:
            self._lock.close()
            raise

    def lock(self) -> int:
        """The file descriptor of the lock, which every process that may write has to hold."""
        return self._lock.fileno()

    def kept(self) -> Snapshot:
        """The objects of the last run; none in a new directory."""
        rows = self._database.execute("SELECT resource, version, fields, tree FROM objects").fetchall()
        objects: dict[str, dict[str, Stored]] = {}
        for resource, version, fields, tree in rows:
            stored = _stored(tree, version, msgspec.json.decode(fields))
            objects.setdefault(resource, {})[stored.key] = stored
        (number,) = self._database.execute("SELECT coalesce(max(number), 0) FROM version").fetchone()
        return Snapshot(number, objects)

    def follow(self, snapshot: Callable[[], Snapshot]) -> None:
        """From now on keep this state and what `wrote` reports."""
        self._snapshot = snapshot
        self._rewrite()

    def wrote(self, resource: str, change: Change) -> None:
        """Keep a write. While the directory cannot be written, the sandbox continues, and a later write keeps all."""
        if self._snapshot is None:
            return
        if self._is_behind:
            self._rewrite()
            return
        try:
            with self._database:
                if change.type == "DELETED":
                    where = (resource, change.stored.key)
                    self._database.execute("DELETE FROM objects WHERE resource = ? AND key = ?", where)
                else:
                    self._insert(resource, change.stored)
                self._database.execute("UPDATE version SET number = ?", (change.version,))
        except sqlite3.Error as error:
            self._fall_behind(error)

    def close(self) -> None:
        """Let another sandbox open it. Idempotent."""
        self._snapshot = None
        self._database.close()
        self._lock.close()

    def _rewrite(self) -> None:
        assert self._snapshot is not None
        snapshot = self._snapshot()
        try:
            with self._database:
                self._database.execute("DELETE FROM objects")
                for resource, objects in snapshot.objects.items():
                    for stored in objects.values():
                        self._insert(resource, stored)
                self._database.execute("DELETE FROM version")
                self._database.execute("INSERT INTO version VALUES (?)", (snapshot.version,))
        except sqlite3.Error as error:
            self._fall_behind(error)
        else:
            self._is_behind = False

    def _insert(self, resource: str, stored: Stored) -> None:
        row = (resource, stored.key, stored.version, msgspec.json.encode(stored.fields), stored.raw)
        self._database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", row)

    def _fall_behind(self, error: sqlite3.Error) -> None:
        if not self._is_behind:
            _log.error("objects are not kept until this is mended", directory=str(self.directory), cause=str(error))
        self._is_behind = True


def _check_content(directory: Path) -> None:
    """Raises Unavailable for a directory with other content."""
    try:
        names = {path.name for path in directory.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unavailable(f"can't read {directory}: {error.strerror or error}; name another --keep") from None
    if names and "objects.db" not in names - {"lock", "volumes"}:
        raise Unavailable(f"{directory} has files, but none of a sandbox; name an empty directory for --keep")


def _locked(directory: Path) -> IO[bytes]:
    """Raises Unavailable, OSError."""
    lock = (directory / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise Unavailable(f"{directory} is in use by another sandbox; end that one, or name another --keep") from None
    return lock


def _opened(directory: Path) -> sqlite3.Connection:
    """Raises Unavailable."""
    path = directory / "objects.db"
    is_new = not path.exists()
    try:
        # each use is under the lock of the storage
        database = sqlite3.connect(path, check_same_thread=False)
        try:
            _check_format(database, directory, is_new=is_new)
            database.executescript(_SCHEMA)
        except BaseException:
            database.close()
            raise
    except sqlite3.Error as error:
        raise Unavailable(f"can't read {path}: {error}; restore it, or name another --keep") from None
    return database


def _check_format(database: sqlite3.Connection, directory: Path, *, is_new: bool) -> None:
    """Raises Unavailable, sqlite3.Error."""
    application, written = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if is_new:
        return
    if application != _APPLICATION:
        raise Unavailable(f"{directory}/objects.db is no sandbox's; name another --keep")
    if written != _FORMAT:
        which = f"its format is {written}, this program reads {_FORMAT}"
        raise Unavailable(f"another version of tidb-operator wrote {directory}: {which}; open it with that version")


def _stored(raw: bytes, version: int, fields: dict[str, str]) -> Stored:
    meta: Json = msgspec.json.decode(raw)["metadata"]
    labels = dict(meta.get("labels") or {})
    return Stored(raw, meta.get("namespace", ""), meta["name"], meta.get("uid", ""), version, labels, fields)
