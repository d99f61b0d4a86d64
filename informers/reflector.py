"""A reflector follows one resource of the API server by lists and watches (informers-workqueue.md 11).

It is a state machine whose step is one act: a list, the opening of a watch, or one event. Each step returns the seconds
until the next; `run` is the loop that waits. A round is a list and the watches after it until one fails; rounds and
retries of watches share one backoff.

    list ──ok──▶ open ──ok──▶ event ──▶ event … ──closed by the server──▶ open
     ▲ any error  │ refused, 429: wait, open again
     └── wait ◀───┴─ other errors, expired, a very short watch

With `streaming` a round begins with a watch that delivers the list first (`informers.attempts`). If that fails, the
round continues with a list.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from logging import ERROR, INFO
from typing import Protocol, TypeAlias

import structlog

from informers.attempts import (
    STREAM_COMPLETE,
    STREAM_REQUEST,
    STREAM_SILENCE,
    Backoff,
    InitialEvents,
    is_too_large,
    is_too_many_requests,
)
from informers.list_watch import ListWatch
from informers.metrics import (
    LIST_ERROR,
    LIST_EXPIRED,
    LIST_STREAMED,
    LIST_SUCCESS,
    WATCH_ERROR,
    WATCH_EXPIRED,
    WATCH_STOPPED,
    WATCH_TIMEOUT,
    WATCH_VERY_SHORT,
    InformerMetrics,
    ResourceMetrics,
)
from informers.pager import PAGE_SIZE, PagedList, list_pages
from kube.client import Watch, WatchEvent
from kube.errors import ApiError, BadRequest, Expired, Invalid
from kube.failure_log import FailureLog
from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TransportError

log = structlog.get_logger(__name__)

_MIN_WATCH_SECONDS = 300
_VERY_SHORT = 1.0
_LONG_LIST = 10.0
_SHOWN = 3
"""The number of unreadable items whose reasons are logged."""


class Sink(Protocol):
    """The receiver of a reflector's lists and events; in an informer, the delta queue."""

    def add(self, obj: Object) -> None:
        """Receive a created object."""

    def update(self, obj: Object) -> None:
        """Receive a changed object."""

    def delete(self, obj: Object) -> None:
        """Receive a deleted object, with the version of its deletion."""

    def replace(self, objects: Iterable[Object], resource_version: str) -> None:
        """Receive a whole list."""

    def bookmark(self, resource_version: str) -> None:
        """Receive a bookmark: every change up to the version has been sent."""


@dataclass(slots=True)
class _OpenWatch:
    watch: Watch
    events: Iterator[WatchEvent]
    opened_at: float
    since: str = ""
    """The version at which the watch began."""
    unordered: bool = False
    """Began at version "" or "0": the initial ADDED events are not in order of their versions (REF-23)."""
    initial: InitialEvents | None = None
    """The initial events so far; None for a watch without them, or once they are complete."""
    seen: int = 0


class Reflector:
    """Keeps a sink up to date with the API server. One thread drives it."""

    def __init__(
        self,
        source: ListWatch,
        sink: Sink,
        clock: Clock,
        randomness: Randomness,
        *,
        metrics: ResourceMetrics | None = None,
        streaming: bool = False,
    ) -> None:
        """With `streaming`, request the list as part of the watch (REF-40d)."""
        self.resource: Resource = source.resource
        self.on_error: WatchErrorHandler = log_watch_error
        """Called after each failed round; must be quick (INF-41)."""
        self.is_receiving = False
        """True while a list arrives. The transport gives up a silent one."""
        self._source = source
        self._sink = sink
        self._clock = clock
        self._randomness = randomness
        self._metrics = metrics or InformerMetrics().claim("", source.resource)
        self._backoff = Backoff(clock, randomness)
        self._log = log.bind(resource=str(source.resource))
        self.failures = FailureLog(self._log, clock)
        """Logs that the reflector cannot list or watch."""
        self._streaming = streaming
        self._act: Callable[[], float] = self._begin
        self._open_watch: _OpenWatch | None = None
        self._stopping = False
        self._version = ""
        self._version_unavailable = False
        self._expired_version = ""
        self._first_list_was_paginated = False

    @property
    def last_sync_resource_version(self) -> str:
        """The version that the sink has reached, empty before the first list (INF-42)."""
        return self._version

    def run(self, stop: Stop) -> None:
        """Step and wait until stopped.

        `stop` aborts a watch that blocks in the network (TH-10, TH-11). A list or the opening of a watch ends when the
        owner closes the transport (REF-3, TH-12).
        """
        with stop.calling(self._abort):
            while not stop.is_set():
                pause = self.step()
                if pause:
                    stop.wait(self._clock, pause)
        self._close_watch(WATCH_STOPPED)

    def step(self) -> float:
        """List, open a watch or take one event; return the seconds until the next step."""
        try:
            return self._act()
        except ANY_FAILURE as error:
            # whatever failed in this round, the list of the next one repairs it
            if self._stopping:
                return 0.0
            if isinstance(error, Expired):
                self._note_expired()
            self._report(error if isinstance(error, Exception) else RuntimeError(repr(error)))
            return self._end_round(WATCH_ERROR)

    def _report(self, error: Exception) -> None:
        try:
            self.on_error(self, error)
        except ANY_FAILURE:
            # if this exception ended the reflector, its cache would silently stop following the server
            self._log.exception("watch error handler failed", error=str(error))

    def _abort(self) -> None:
        self._stopping = True
        if self._open_watch:
            self._open_watch.watch.abort()

    def _begin(self) -> float:
        return self._stream() if self._streaming else self._list()

    def _stream(self) -> float:
        """Request the list and the watch in one stream (REF-40)."""
        try:
            watch = self._source.watch(
                resource_version="" if self._version_unavailable else self._version,
                timeout_seconds=self._watch_seconds(),
                options=STREAM_REQUEST,
                # this also ends the complete stream at its first silence; an ordinary watch follows
                silence=STREAM_SILENCE,
            )
        except (ApiError, TransportError) as error:
            return self._stream_failed(error)
        self._open_watch = _OpenWatch(watch, iter(watch), self._clock.now(), initial=InitialEvents())
        self._act = self._take
        return 0.0

    def _stream_failed(self, error: ApiError | TransportError) -> float:
        """Stream again if that may succeed, otherwise list in this round (REF-40c, REF-40f)."""
        if isinstance(error, ConnectionRefused) or is_too_many_requests(error):
            return self._stream_again()
        if isinstance(error, Expired) or is_too_large(error):
            at_once, self._version_unavailable = not self._version_unavailable, True
            return self._stream_again(at_once=at_once)
        if isinstance(error, BadRequest | Invalid):
            self._streaming = False  # never again: this server does not support it (REF-40e)
            self._log.info("the server cannot stream lists")
        return self._list_instead(error)

    def _stream_again(self, *, at_once: bool = False) -> float:
        """Discard the incomplete stream and open a new one."""
        self._close_watch(WATCH_ERROR)
        self._act = self._stream
        return 0.0 if at_once else self._backoff.next()

    def _list_instead(self, why: Exception | None) -> float:
        self._log.debug("cannot stream the list, listing instead", error=str(why or "its end does not come"))
        self._close_watch(WATCH_ERROR)
        self._act = self._list
        return 0.0

    def _streamed(self, stream: _OpenWatch, initial: InitialEvents, version: str) -> None:
        """Hand over the complete list; later events are changes."""
        self._sink.replace(initial.objects, version)
        self._metrics.list_ended(LIST_STREAMED)
        self._version_unavailable = False
        self._version = version
        stream.initial = None
        self._log_recovery()

    def _list(self) -> float:
        listed = self._list_or_relist()
        self._sink.replace(listed.items, listed.resource_version)
        self._version_unavailable = False
        self._version = listed.resource_version
        self._act = self._open
        return 0.0

    def _list_or_relist(self) -> PagedList:
        """List; if the known version is too old or too new, list again at the latest one (REF-12)."""
        try:
            return self._list_at(self._list_version())
        except ApiError as error:
            if not isinstance(error, Expired) and not is_too_large(error):
                raise
        self._version_unavailable = True
        return self._list_at(self._list_version())

    def _list_at(self, version: str) -> PagedList:
        started = self._clock.now()
        try:
            listed = list_pages(
                self._source, resource_version=version, limit=self._limit(version), on_received=self._note_receiving
            )
        except Exception as error:
            self._metrics.list_ended(LIST_EXPIRED if isinstance(error, Expired) else LIST_ERROR)
            raise
        finally:
            self.is_receiving = False
        self._metrics.list_ended(LIST_SUCCESS)
        if (seconds := self._clock.now() - started) > _LONG_LIST:
            self._log.info("a list took long", seconds=round(seconds, 1), objects=len(listed.items))
        if listed.unreadable:
            self._metrics.objects_skipped(len(listed.unreadable))
            shown = listed.unreadable[:_SHOWN]
            self._log.error("list items cannot be read, skipped", count=len(listed.unreadable), items=shown)
        if version == "0" and listed.paginated:
            self._first_list_was_paginated = True
        return listed

    def _note_receiving(self) -> None:
        self.is_receiving = True

    def _list_version(self) -> str:
        """The version to list at: empty for the latest, otherwise "not older than the known one" (REF-10)."""
        if self._version_unavailable:
            return ""
        return self._version or "0"

    def _limit(self, version: str) -> int:
        """The page size; 0 if the server can answer from its watch cache (REF-11)."""
        if self._first_list_was_paginated or version in {"", "0"}:
            return PAGE_SIZE
        return 0

    def _open(self) -> float:
        try:
            watch = self._source.watch(resource_version=self._version, timeout_seconds=self._watch_seconds())
        except (ConnectionRefused, ApiError) as error:
            if not isinstance(error, ConnectionRefused) and not is_too_many_requests(error):
                raise
            self.failures.failed("could not open the watch, retrying", level=INFO, error=str(error))
            return self._backoff.next()
        began = self._version
        self._open_watch = _OpenWatch(watch, iter(watch), self._clock.now(), began, unordered=began in {"", "0"})
        self._act = self._take
        self._log_recovery()
        return 0.0

    def _log_recovery(self) -> None:
        self.failures.worked("list and watch work again")

    def _watch_seconds(self) -> int:
        return self._randomness.integer(_MIN_WATCH_SECONDS, 2 * _MIN_WATCH_SECONDS)

    def _take(self) -> float:
        stream = self._open_watch
        assert stream is not None
        broken: TransportError | None = None
        try:
            event = next(stream.events, None)
        except TransportError as error:
            event, broken = None, error
        if self._stopping:
            return 0.0
        if event is None:
            return self._closed(stream, broken)
        stream.seen += 1
        self._metrics.event_received(self._clock.wall().timestamp())
        if event.type == "ERROR" and isinstance(event.object, ApiError):
            return self._stream_failed(event.object) if stream.initial else self._refused(event.object)
        obj = self._readable(event)
        if obj is None:
            return self._skip(event)
        self._store_event(stream, event.type, obj)
        if stream.initial and self._clock.now() - stream.opened_at > STREAM_COMPLETE:
            self._streaming = False  # this server, or a proxy before it, never ends the initial events (REF-40e)
            return self._list_instead(None)
        return 0.0

    def _readable(self, event: WatchEvent) -> Object | None:
        """The object of an event, or None if it is not one of the resource. A bookmark's object has no name."""
        obj = event.object
        if isinstance(obj, ApiError) or obj.kind != self._source.kind:
            return None
        return obj if obj.metadata.name or event.type == "BOOKMARK" else None

    def _skip(self, event: WatchEvent) -> float:
        """Skip an event without a readable object. After a deletion, list again to find the deleted object."""
        self._log.error("watch event without the expected object, skipped", type=event.type, object=str(event.object))
        self._metrics.objects_skipped(1)
        if event.type != "DELETED":
            return 0.0
        self._version_unavailable = True
        return self._end_round(WATCH_ERROR)

    def _closed(self, stream: _OpenWatch, broken: TransportError | None) -> float:
        """Watch again from the last version; a very short watch without news is a failure (REF-25, REF-26, TH-13).

        Watches begin at least a second apart.
        """
        if broken:
            self._log.debug("watch interrupted", error=str(broken))
        left = stream.opened_at + _VERY_SHORT - self._clock.now()
        useless = left > 0 and (not stream.seen or (not stream.initial and self._version == stream.since))
        if stream.initial:
            # a stream that ends at once or falls silent will not complete the next time either (REF-40c, REF-40e)
            hopeless = useless or isinstance(broken, RequestTimeout)
            return self._list_instead(broken) if hopeless else self._stream_again()
        if isinstance(broken, RequestTimeout) and not stream.seen:
            # after a restore of etcd from a backup the server may not have reached this version again: list
            return self._end_round(WATCH_ERROR)
        if useless:
            self.failures.failed("very short watch: closed within a second without news")
            return self._end_round(WATCH_VERY_SHORT)
        self._close_watch(WATCH_ERROR if broken else WATCH_TIMEOUT)
        self._act = self._open
        return max(0.0, left)

    def _refused(self, error: ApiError) -> float:
        """Act on an ERROR event (REF-27 to REF-29)."""
        if isinstance(error, Expired):
            self._log.debug("watch expired", error=str(error))
            self._note_expired()
            return self._end_round(WATCH_EXPIRED)
        if is_too_many_requests(error):
            self._close_watch(WATCH_ERROR)
            self._act = self._open
            return self._backoff.next()
        self.failures.failed("watch ended with an error", error=str(error), reason=error.reason)
        return self._end_round(WATCH_ERROR)

    def _note_expired(self) -> None:
        """List once more at the known version (REF-27), or at the latest one if this version has expired before.

        A lagging watch cache answers a list "not older than the known version" with that same version, and the watch
        from there expires again (kubernetes#133810).
        """
        self._version_unavailable = self._version == self._expired_version
        self._expired_version = self._version

    def _store_event(self, stream: _OpenWatch, event_type: str, obj: Object) -> None:
        if stream.initial:
            if stream.initial.take(event_type, obj):
                self._streamed(stream, stream.initial, obj.metadata.resource_version)
            return
        try:
            self._hand_over(event_type, obj)
        except ANY_FAILURE:
            self._log.exception("storing a watch event failed", type=event_type, object=repr(obj))
            self._metrics.objects_skipped(1)
        stream.unordered = stream.unordered and event_type == "ADDED"
        # without a version the next watch would begin at an arbitrary one and miss deletions before it
        if not stream.unordered and obj.metadata.resource_version:
            self._version = obj.metadata.resource_version

    def _hand_over(self, event_type: str, obj: Object) -> None:
        match event_type:
            case "ADDED":
                self._sink.add(obj)
            case "MODIFIED":
                self._sink.update(obj)
            case "DELETED":
                self._sink.delete(obj)
            case "BOOKMARK":
                self._sink.bookmark(obj.metadata.resource_version)
            case _:
                self._log.error("unknown type of watch event", type=event_type, object=repr(obj))

    def _end_round(self, reason: str) -> float:
        self._close_watch(reason)
        self._act = self._begin
        return self._backoff.next()

    def _close_watch(self, reason: str) -> None:
        if self._open_watch is None:
            return
        stream, self._open_watch = self._open_watch, None
        stream.watch.close()
        self._metrics.watch_ended(reason)


WatchErrorHandler: TypeAlias = Callable[[Reflector, Exception], None]


def log_watch_error(reflector: Reflector, error: Exception) -> None:
    """Log a failed round at the level of its error (REF-4)."""
    failed, text = reflector.failures.failed, str(error)
    if isinstance(error, Expired):
        log.debug("list or watch expired", resource=str(reflector.resource), error=text)
    elif isinstance(error, ConnectionLost):
        failed("list or watch lost its connection", level=INFO, error=text)
    elif isinstance(error, ApiError | TransportError):
        failed("list or watch failed", level=ERROR, error=text)
    else:
        failed("list or watch failed", level=ERROR, error=text, exc_info=error)
