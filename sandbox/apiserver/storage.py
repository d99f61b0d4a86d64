"""Storage, the counterpart of etcd and the watch cache: objects, one version counter, a window of history.

Objects are immutable bytes, so that readers need no lock. One re-entrant lock guards the rest; a verb holds it from its
read to its write.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

import msgspec

from kube.objects import Json
from kube.resources import LEASES

_FIRST_VERSION = 1
_LEASES = str(LEASES)


class TooOld(Exception):
    """Raised if history does not reach back to the requested version; `oldest` is the oldest known one."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class Stored:
    """One object at one version: its JSON, which begins with kind and apiVersion, and the fields for selectors."""

    raw: bytes
    namespace: str
    name: str
    uid: str
    version: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def tree(self) -> Json:
        """The object as a fresh tree."""
        tree: Json = msgspec.json.decode(self.raw)
        return tree


@dataclass(frozen=True, slots=True)
class Change:
    """One write: ADDED has no previous state; DELETED has the last state under the version of the deletion."""

    type: str
    stored: Stored
    previous: Stored | None

    @property
    def version(self) -> int:
        """The version of this write."""
        return self.stored.version


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state at one version, for `restore`."""

    version: int
    objects: Mapping[str, Mapping[str, Stored]]


class Journal(Protocol):
    """Keeps what is written for a later process. Called under the storage's lock."""

    def kept(self) -> Snapshot:
        """The state that an earlier process has left; empty if there was none."""

    def follow(self, snapshot: Callable[[], Snapshot]) -> None:
        """Keep the current state, which `snapshot` returns, and every later write."""

    def wrote(self, resource: str, change: Change) -> None:
        """Keep a write."""


@dataclass(slots=True)
class _Shelf:
    """One resource: its objects, its recent changes (those up to `floor` are dropped), and its waiting readers."""

    changed: threading.Condition
    floor: int
    objects: dict[str, Stored] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)


class Storage:
    """All objects of a cluster. `window` is the number of changes per resource that history keeps."""

    def __init__(self, window: int = 5000) -> None:
        self.lock = threading.RLock()
        self._window = window
        self._version = self._changed_at = _FIRST_VERSION
        self._floor = 0
        self._shelves: dict[str, _Shelf] = {}
        self._journal: Journal | None = None

    @property
    def version(self) -> int:
        """The version of the latest write."""
        with self.lock:
            return self._version

    @property
    def as_of(self) -> tuple[int, int]:
        """The version of the latest write, and of the last `compact`: `restore` may let versions go back.

        Without Leases, which nodes renew every ten seconds. Without the lock, for readers in the thread that writes:
        what another thread is writing may not be stored yet.
        """
        return self._changed_at, self._floor

    def version_of(self, resource: str) -> int:
        """The version of the resource's latest write, or a later one."""
        with self.lock:
            shelf = self._shelf(resource)
            return shelf.history[-1].version if shelf.history else shelf.floor

    def changed(self, resource: str) -> threading.Condition:
        """Notified after each change of the resource; its lock is the storage's."""
        with self.lock:
            return self._shelf(resource).changed

    def get(self, resource: str, key: str) -> Stored | None:
        """The object of that key, or None."""
        with self.lock:
            return self._shelf(resource).objects.get(key)

    def objects(self, resource: str, namespace: str = "") -> list[Stored]:
        """The objects of a namespace (empty: all), by key."""
        with self.lock:
            return _sorted(self._shelf(resource).objects, namespace)

    def list_at(self, resource: str, namespace: str, version: int) -> list[Stored]:
        """The objects as they were at an earlier version, by key. Raises TooOld."""
        with self.lock:
            objects = dict(self._shelf(resource).objects)
            for change in reversed(self.changes_after(resource, version)):
                objects.pop(change.stored.key, None)
                if change.previous:
                    objects[change.stored.key] = change.previous
        return _sorted(objects, namespace)

    def changes_after(self, resource: str, version: int) -> list[Change]:
        """The changes of the resource newer than `version`, in order. Raises TooOld."""
        with self.lock:
            shelf = self._shelf(resource)
            if version < shelf.floor:
                raise TooOld(version, shelf.floor)
            history = shelf.history
            if not history or history[-1].version <= version:
                return []
            return history[bisect_right(history, version, key=attrgetter("version")) :]

    def write(self, resource: str, tree: Json, fields: tuple[str, ...] = ()) -> Stored:
        """Store the object under a new version and return it; `fields` are the dotted paths that selectors may use."""
        with self.lock:
            self._version += 1
            stored = _stored(tree, self._version, fields)
            shelf = self._shelf(resource)
            previous = shelf.objects.get(stored.key)
            shelf.objects[stored.key] = stored
            self._record(resource, Change("MODIFIED" if previous else "ADDED", stored, previous))
            return stored

    def show(self, resource: str, stored: Stored, tree: Json) -> None:
        """Show the object like this to readers, under its current version and without a watch event."""
        with self.lock:
            self._shelf(resource).objects[stored.key] = _renumbered(stored, tree, stored.version)

    def preview(self, tree: Json, fields: tuple[str, ...] = (), *, new: bool = False) -> Stored:
        """The object as `write` would store it; a new one has no version yet."""
        return _stored(tree, 0 if new else self.version, fields)

    def remove(self, resource: str, stored: Stored) -> Stored:
        """Delete the object and return its last state under the deletion's version."""
        with self.lock:
            self._version += 1
            tree = stored.tree()
            tree["metadata"]["resourceVersion"] = str(self._version)
            last = _renumbered(stored, tree, self._version)
            del self._shelf(resource).objects[stored.key]
            self._record(resource, Change("DELETED", last, stored))
            return last

    @property
    def compacted(self) -> int:
        """The version of the last `compact` (initially 0), before which no list can read."""
        return self._floor

    def compact(self) -> None:
        """Drop all history: watches from an earlier version and tokens of earlier lists expire."""
        with self.lock:
            self._floor = self._version
            for shelf in self._shelves.values():
                shelf.floor = self._version
                shelf.history.clear()

    def snapshot(self) -> Snapshot:
        """The current state; cheap, because objects are shared."""
        with self.lock:
            objects = {resource: dict(shelf.objects) for resource, shelf in self._shelves.items()}
            return Snapshot(self._version, objects)

    def restore(self, snapshot: Snapshot, *, versions_go_back: bool = False) -> None:
        """Return to the state of a snapshot. The version counter continues, and all earlier versions expire.

        With `versions_go_back` it does not, as when etcd is restored without `--bump-revision`.
        """
        with self.lock:
            self._version = snapshot.version if versions_go_back else max(self._version, snapshot.version) + 1
            self._changed_at = self._version
            for resource in {*self._shelves, *snapshot.objects}:
                self._shelf(resource).objects = dict(snapshot.objects.get(resource, {}))
            self.compact()
            if self._journal is not None:
                self._journal.follow(self.snapshot)
            for shelf in self._shelves.values():
                shelf.changed.notify_all()

    def keep(self, journal: Journal) -> None:
        """Let a journal keep the current state and all later writes."""
        with self.lock:
            self._journal = journal
            journal.follow(self.snapshot)

    def _shelf(self, resource: str) -> _Shelf:
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = self._shelves[resource] = _Shelf(threading.Condition(self.lock), self._floor)
        return shelf

    def _record(self, resource: str, change: Change) -> None:
        shelf = self._shelf(resource)
        history = shelf.history
        history.append(change)
        if resource != _LEASES:
            self._changed_at = self._version
        # trimmed by halves, so that not every write moves the whole window
        if len(history) >= 2 * self._window:
            shelf.floor = history[self._window - 1].version
            del history[: self._window]
        if self._journal is not None:
            self._journal.wrote(resource, change)
        shelf.changed.notify_all()


def _stored(tree: Json, version: int, fields: tuple[str, ...]) -> Stored:
    meta = tree["metadata"]
    meta.pop("resourceVersion", None)
    if version:
        meta["resourceVersion"] = str(version)
    ordered = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | tree
    return Stored(
        raw=msgspec.json.encode(ordered),
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta.get("uid", ""),
        version=version,
        labels=dict(meta.get("labels") or {}),
        fields={path: _field(tree, path) for path in ("metadata.name", "metadata.namespace", *fields)},
    )


def _renumbered(stored: Stored, tree: Json, version: int) -> Stored:
    raw = msgspec.json.encode(tree)
    return Stored(raw, stored.namespace, stored.name, stored.uid, version, stored.labels, stored.fields)


def _field(tree: Json, path: str) -> str:
    value: object = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, dict) else str(value)


def _sorted(objects: Mapping[str, Stored], namespace: str) -> list[Stored]:
    prefix = f"{namespace}/" if namespace else ""
    return [objects[key] for key in sorted(objects) if key.startswith(prefix)]
