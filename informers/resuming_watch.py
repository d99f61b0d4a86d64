"""A watch that goes on when its connection ends, for those who need no cache (informers-workqueue.md 21)."""

from collections.abc import Iterator

import structlog

from informers.list_watch import ListWatch
from kube.client import Watch, WatchEvent
from kube.errors import ApiError, Expired, Forbidden, Status, Unauthorized, error_from_status
from kube.objects import Object
from ports.clock import Clock
from ports.stopping import Stop
from ports.transport import TransportError

log = structlog.get_logger(__name__)

_PAUSE = 1.0
"""Seconds between two starts, at least (RW-1)."""


class ResumingWatch:
    """The events after a version, until something says that no more can come, or the stop.

    What cannot be retried is the last event, an ERROR: the version has expired, the watch is not permitted, or an
    object has no version to go on from.
    """

    def __init__(
        self, source: ListWatch, resource_version: str, clock: Clock, stop: Stop, *, timeout_seconds: int = 300
    ) -> None:
        """Raises ValueError for a version that does not say where to begin (RW-1)."""
        if resource_version in ("", "0"):
            raise ValueError(f"a watch cannot be resumed from version {resource_version!r}")
        self._source = source
        self._version = resource_version
        self._clock = clock
        self._stop = stop
        self._timeout_seconds = timeout_seconds
        self._started: float | None = None
        self._pause = _PAUSE
        self._over = False

    @property
    def resource_version(self) -> str:
        """The version of the last event or bookmark."""
        return self._version

    def __iter__(self) -> Iterator[WatchEvent]:
        """Events in order, without bookmarks. One thread may iterate; the stop ends a read that blocks."""
        while not self._over and not self._stop.wait(self._clock, self._remaining_pause()):
            self._started, self._pause = self._clock.now(), _PAUSE
            try:
                watch = self._source.watch(resource_version=self._version, timeout_seconds=self._timeout_seconds)
            except (ApiError, TransportError) as error:
                yield from self._failed(error)
                continue
            try:
                with self._stop.calling(watch.abort):
                    yield from self._read(watch)
            finally:
                watch.close()

    def _remaining_pause(self) -> float:
        return 0.0 if self._started is None else self._started + self._pause - self._clock.now()

    def _read(self, watch: Watch) -> Iterator[WatchEvent]:
        try:
            for event in watch:
                yield from self._passed_on(event)
                if self._over or event.type == "ERROR":
                    return
        except TransportError as error:
            log.debug("watch broke, going on", resource=str(self._source.resource), error=str(error))

    def _passed_on(self, event: WatchEvent) -> Iterator[WatchEvent]:
        obj = event.object
        if event.type == "ERROR" and isinstance(obj, ApiError):
            yield from self._failed(obj)
        elif isinstance(obj, ApiError) or not obj.metadata.resource_version:
            yield self._last(obj if isinstance(obj, ApiError) else _without_version(obj))
        else:
            self._version = obj.metadata.resource_version
            if event.type != "BOOKMARK":
                yield event

    def _failed(self, error: ApiError | TransportError) -> Iterator[WatchEvent]:
        """Pass on what is final; wait as the server asks for the rest (RW-3)."""
        if isinstance(error, Expired | Forbidden | Unauthorized):
            yield self._last(error)
            return
        if isinstance(error, ApiError):
            self._pause = max(_PAUSE, error.details.retry_after_seconds)
        log.debug("watch failed, going on", resource=str(self._source.resource), error=str(error))

    def _last(self, error: ApiError) -> WatchEvent:
        self._over = True
        return WatchEvent("ERROR", error)


def _without_version(obj: Object) -> ApiError:
    return error_from_status(Status(code=500, message=f"object without a resourceVersion: {obj!r}"))
