"""Hearing at once that a Lease was freed, while standing by for it.

The watch decides nothing: it wakes the elector, which reads the Lease and judges as ever (LE-12). Where it is forbidden
or breaks, the elector's polling remains (LE-14), and a freed Lease is taken a little later.
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
"""Seconds until the next watch: rights are seldom granted later, connections soon come back."""


class LeaseWatch:
    """Watches one Lease, in a thread of its own, between `start` and `stop`. Serves once."""

    def __init__(self, client: Client, close: Callable[[], None], namespace: str, name: str, clock: Clock) -> None:
        """`close` ends, for good, whatever blocks in the transport of `client`, which nobody else uses."""
        self._client = client
        self._close = close
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._failures = FailureLog(_log, clock)
        self._stop = Stop()
        self._thread: threading.Thread | None = None

    def start(self, on_free: Callable[[], None]) -> None:
        """Call `on_free` whenever the Lease has no holder, or is gone. Idempotent; nothing after `stop`."""
        if self._thread or self._stop.is_set():
            return
        self._thread = threading.Thread(target=self._run, args=(on_free,), name="lease-watch")
        self._thread.start()

    def stop(self) -> None:
        """End the watch, without waiting for its thread. Idempotent."""
        self._stop.set()

    def join(self) -> None:
        """Wait until the thread has ended, if there is one."""
        if self._thread:
            self._thread.join()

    def step(self, on_free: Callable[[], None]) -> float:
        """One watch, from its opening to its end; the seconds to wait before the next."""
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
        """From the present state on, which comes first: no version to know, no right to list needed."""
        return self._client.watch(
            LEASES,
            self._namespace,
            resource_version="",
            timeout_seconds=_WATCH_SECONDS,
            field_selector=f"metadata.name={self._name}",
        )


def _is_free(event: WatchEvent) -> bool:
    """Whether the Lease can be had now. Raises ApiError for what ends the watch."""
    if isinstance(event.object, ApiError):
        raise event.object
    if event.type == "BOOKMARK":
        return False
    return event.type == "DELETED" or not record_of(event.object).holder
