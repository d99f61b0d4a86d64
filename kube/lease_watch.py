"""A watch that notifies a standby as soon as the Lease is released.

The watch decides nothing: it wakes the elector, which reads the Lease and decides as usual (LE-12). If the watch is
forbidden or breaks, the elector still polls (LE-14) and takes a freed Lease a little later.
"""

import threading
from collections.abc import Callable
from logging import ERROR, INFO

import structlog

from kube.client import Client, Watch, WatchEvent
from kube.errors import ApiError, Forbidden
from kube.failure_log import FailureLog
from kube.leases import record_of
from kube.resources import LEASES
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.stopping import Stop
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_WATCH_SECONDS = 600
_AFTER_END = 1.0
_AFTER_ERROR = 10.0
_AFTER_REFUSAL = 300.0
"""Seconds until the next watch after a refusal, which is rarely lifted; after a broken connection it is much sooner."""


class LeaseWatch:
    """Watches one Lease in its own thread between `start` and `stop`. Can be used once."""

    def __init__(self, client: Client, close: Callable[[], None], namespace: str, name: str, clock: Clock) -> None:
        """`close` permanently ends all blocking calls in the transport of `client`, which must not be shared."""
        self._client = client
        self._close = close
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._failures = FailureLog(_log, clock)
        self._stop = Stop()
        self._thread: threading.Thread | None = None

    def start(self, on_free: Callable[[], None]) -> None:
        """Call `on_free` whenever the Lease has no holder or has been deleted; never after `stop`. Idempotent."""
        if self._thread or self._stop.is_set():
            return
        self._thread = threading.Thread(target=self._run, args=(on_free,), name="lease-watch")
        self._thread.start()

    def stop(self) -> None:
        """End the watch without waiting for its thread. Idempotent."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread:
            self._thread.join()

    def step(self, on_free: Callable[[], None]) -> float:
        """Run one watch from its opening to its end; return the seconds to wait before the next."""
        try:
            self._follow(on_free)
        except Forbidden as error:
            message = "a released lease will be noticed by polling only"
            self._failures.failed(message, lease=self._name, cause=str(error))
            return _AFTER_REFUSAL
        except (ApiError, TransportError) as error:
            if not self._stop.is_set():
                self._failures.failed("watching the lease failed", level=INFO, lease=self._name, cause=str(error))
            return _AFTER_ERROR
        except ANY_FAILURE:
            self._failures.failed("watching the lease failed", level=ERROR, lease=self._name, exc_info=True)
            return _AFTER_ERROR
        return _AFTER_END

    def _run(self, on_free: Callable[[], None]) -> None:
        with self._stop.calling(self._close):
            while not self._stop.wait(self._clock, self.step(on_free)):
                pass

    def _follow(self, on_free: Callable[[], None]) -> None:
        watch = self._open()
        try:
            for event in watch:
                if _is_free(event):
                    on_free()
        finally:
            watch.close()

    def _open(self) -> Watch:
        """Start from the current state, which needs no version and no right to list."""
        return self._client.watch(
            LEASES,
            self._namespace,
            resource_version="",
            timeout_seconds=_WATCH_SECONDS,
            field_selector=f"metadata.name={self._name}",
        )


def _is_free(event: WatchEvent) -> bool:
    """True if the Lease can be taken now. Raises ApiError for an event that ends the watch."""
    if isinstance(event.object, ApiError):
        raise event.object
    if event.type == "BOOKMARK":
        return False
    return event.type == "DELETED" or not record_of(event.object).holder
