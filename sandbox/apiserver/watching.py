"""Watches: changes as a stream of JSON lines, with bookmarks, selectors and 410."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from kube.objects import Json
from ports.clock import Clock
from ports.transport import ConnectionLost, RequestTimeout
from sandbox.apiserver.refusals import expired
from sandbox.apiserver.selectors import Predicate
from sandbox.apiserver.storage import Change, Storage, Stored, TooOld

BOOKMARK_INTERVAL = 60.0
"""Seconds between two bookmarks of a watch that requests them."""

Present = Callable[[Stored], bytes]
"""Renders an object in the requested form: JSON or Table."""


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """The parameters of a watch.

    It starts at `version`, after the `initial` objects. `timeout` and `idle_timeout` are in seconds.
    """

    resource: str
    namespace: str
    selects: Predicate
    version: int
    timeout: float
    bookmarks: bool
    bookmark: Callable[[int, bool], bytes]
    present: Present
    initial: tuple[Stored, ...] = ()
    announce_end_of_initial: bool = False
    idle_timeout: float | None = None


class _Timers:
    """The deadlines of a watch: its end, its next bookmark (every minute and before its end), and its reader's idle
    timeout.
    """

    def __init__(self, clock: Clock, plan: WatchPlan) -> None:
        now = clock.now()
        self._clock = clock
        self._patience = plan.idle_timeout or math.inf
        self._end = now + plan.timeout
        self._bookmark = min(now + BOOKMARK_INTERVAL, self._end) if plan.bookmarks else math.inf
        self._silence = now + self._patience

    def next(self) -> float:
        """The earliest deadline."""
        return min(self._end, self._bookmark, self._silence)

    def sent(self) -> None:
        """Record that the reader got data."""
        self._silence = self._clock.now() + self._patience

    def sent_bookmark(self) -> None:
        """Record that the reader got a bookmark."""
        self.sent()
        self._bookmark = min(self._clock.now() + BOOKMARK_INTERVAL, self._end)

    def is_bookmark_due(self) -> bool:
        """True if a bookmark is due."""
        return self._clock.now() >= self._bookmark

    def is_over(self) -> bool:
        """True if the timeout of the watch has passed."""
        return self._clock.now() >= self._end

    def is_silent(self) -> bool:
        """True if the reader's idle timeout has passed."""
        return self._clock.now() >= self._silence


class WatchStream:
    """An open watch; iterate in one thread."""

    def __init__(
        self, storage: Storage, clock: Clock, plan: WatchPlan, closed: Callable[["WatchStream"], None]
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._plan = plan
        self._closed = closed
        self._changed: threading.Condition = storage.changed(plan.resource)
        self._aborted = False
        self._broken = False
        self._version = plan.version

    @property
    def status(self) -> int:
        """200: a refusal is answered before the stream exists."""
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a JSON stream."""
        return {"content-type": "application/json"}

    def __iter__(self) -> Iterator[bytes]:
        """Lines; one chunk may contain several. Raises ConnectionLost if the server breaks the watch."""
        yield from self._initial()
        timers = _Timers(self._clock, self._plan)
        while True:
            try:
                changes = self._wait(timers.next())
            except TooOld as error:
                yield _line(b"ERROR", msgspec.json.encode(expired(str(error)).status()))
                return
            if self._aborted:
                return
            if lines := b"".join(self._lines(changes)):
                timers.sent()
                yield lines
            if timers.is_bookmark_due():
                timers.sent_bookmark()
                yield _line(b"BOOKMARK", self._plan.bookmark(self._version, False))
            if timers.is_over():
                return
            if timers.is_silent():
                raise RequestTimeout("GET", self._plan.resource, "the watch was silent for too long")

    def abort(self) -> None:
        """End the stream from another thread."""
        with self._changed:
            self._aborted = True
            self._changed.notify_all()

    def disconnect(self) -> None:
        """Break the stream as a lost connection does."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Unregister the watch."""
        self.abort()
        self._closed(self)

    def _initial(self) -> Iterator[bytes]:
        plan = self._plan
        lines = [_line(b"ADDED", plan.present(stored)) for stored in plan.initial]
        if plan.announce_end_of_initial:
            lines.append(_line(b"BOOKMARK", plan.bookmark(plan.version, True)))
        if lines:
            yield b"".join(lines)

    def _wait(self, deadline: float) -> list[Change]:
        """Wait for further changes, at most until the deadline. Raises TooOld, ConnectionLost."""
        with self._changed:
            while True:
                if self._broken:
                    raise ConnectionLost("GET", self._plan.resource, "the server ended the watch")
                changes = self._storage.changes_after(self._plan.resource, self._version)
                remaining = deadline - self._clock.now()
                if changes or self._aborted or remaining <= 0:
                    # `changes` contains all changes up to here, including other resources'
                    self._version = max(self._version, self._storage.version)
                    return changes
                self._clock.wait(self._changed, remaining)

    def _lines(self, changes: list[Change]) -> Iterator[bytes]:
        prefix = f"{self._plan.namespace}/" if self._plan.namespace else ""
        for change in changes:
            if change.stored.key.startswith(prefix) and (event := self._event(change)):
                yield event

    def _event(self, change: Change) -> bytes:
        """The line of a change, empty if the selector hides it: entering the selection is ADDED, leaving it
        is DELETED.
        """
        selects, present = self._plan.selects, self._plan.present
        was = change.previous is not None and selects(change.previous)
        now = change.type != "DELETED" and selects(change.stored)
        if now:
            return _line(b"MODIFIED" if was else b"ADDED", present(change.stored))
        if was:
            return _line(b"DELETED", present(_last_seen(change)))
        return b""


def bookmark_object(api_version: str, kind: str, version: int, *, end_of_initial: bool) -> Json:
    """The object of a BOOKMARK: its version, and the mark of the end of the initial events."""
    meta: Json = {"resourceVersion": str(version)}
    if end_of_initial:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"kind": kind, "apiVersion": api_version, "metadata": meta}


def _last_seen(change: Change) -> Stored:
    """The state in a DELETED event: the previous one, under the version of the change."""
    if change.type == "DELETED" or change.previous is None:
        return change.stored
    previous, tree = change.previous, change.previous.tree()
    tree["metadata"]["resourceVersion"] = str(change.version)
    return Stored(
        msgspec.json.encode(tree),
        previous.namespace,
        previous.name,
        previous.uid,
        change.version,
        previous.labels,
        previous.fields,
    )


def _line(type_: bytes, body: bytes) -> bytes:
    return b'{"type":"' + type_ + b'","object":' + body + b"}\n"
