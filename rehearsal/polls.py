"""The polls of an operator that a rehearsal puts off, because servers would answer as at the last one.

An operator that waits for servers reconciles every few seconds, and most of these reconciles find nothing new. Asking
the servers alone takes a tenth of the CPU. Changes in Kubernetes wake the operator anyway. A plan of an upgrade of
3/3/2 takes 150 reconciles instead of 189.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from controllers.controller import Result, Sync
from ports.clock import Clock
from ports.transport import ByteStream, ConnectionRefused, Request, Response, Transport, TransportError

_LONGEST = 5.0
"""Seconds after which the operator polls in any case: some waits end by the clock, or with a heartbeat."""
_PART = 0.05
"""Or after such a part of the time in which nothing has happened. The operator itself polls after a tenth of it, and
after 10 s at most: for half an hour, until PD gives a lost store up.
"""

_BEATS = re.compile(rb'"(last_heartbeat|last_heartbeat_ts|uptime)": [^,\n]*')
"""What PD says about a store that has sent another heartbeat, and nothing new in it."""

_Asked: TypeAlias = tuple[Transport, Request, Response | None]
"""A question to a server, and its answer; None if it refused the connection."""


@dataclass(slots=True)
class _Reading:
    """What a reconcile that began `at` a time has asked servers."""

    at: float
    asked: list[_Asked] = field(default_factory=list)
    is_repeatable: bool = True
    """False if it has also changed a server, or if one did not answer."""
    is_over: bool = False
    """False if the reconcile has failed."""

    @property
    def is_current(self) -> bool:
        """True if each server would answer the same."""
        return self.is_over and self.is_repeatable and all(map(_is_answered_again, self.asked))


def _is_answered_again(asked: _Asked) -> bool:
    transport, request, before = asked
    try:
        now = transport.request(request)
    except TransportError as error:
        return before is None and isinstance(error, ConnectionRefused)
    if before is None or before.status != now.status:
        return False
    return before.body == now.body or _BEATS.sub(b"", before.body) == _BEATS.sub(b"", now.body)


class Polls:
    """The last readings of the objects for which an operator polls."""

    def __init__(self, clock: Clock, version: Callable[[], int]) -> None:
        """`version` is another one after each change in Kubernetes."""
        self._clock = clock
        self._version = version
        self._seen = version()
        self._still_since = clock.now()
        self._readings: dict[tuple[Sync, str], _Reading] = {}
        self.reading = _Reading(0.0)
        """Where questions are noted."""

    def watched(self, sync: Sync) -> Sync:
        """A sync whose questions are noted."""

        def watched(key: str) -> Result | None:
            now = self._clock.now()
            if self._version() != self._seen:
                self._still_since = now
            self.reading = self._readings[sync, key] = _Reading(now)
            result = sync(key)
            self._seen = self._version()
            if result is not None and result.requeue_after:
                self.reading.is_over = True
            else:
                del self._readings[sync, key]
            return result

        return watched

    def noting(self, transport: Transport) -> Transport:
        """A transport whose questions are noted."""
        return _Noting(transport, self)

    def may_wait(self) -> bool:
        """True if the operator polls for objects, and would read nothing new about any of them."""
        now, readings = self._clock.now(), list(self._readings.values())
        if not all(each.is_current for each in readings):
            self._still_since = now
            return False
        longest = max(_LONGEST, _PART * (now - self._still_since))
        return bool(readings) and all(now < each.at + longest for each in readings)


class _Noting:
    def __init__(self, transport: Transport, polls: Polls) -> None:
        self._transport = transport
        self._polls = polls

    def request(self, request: Request) -> Response:
        reading = self._polls.reading
        reading.is_repeatable &= request.is_read
        try:
            answer = self._transport.request(request)
        except ConnectionRefused:
            reading.asked.append((self._transport, request, None))
            raise
        except TransportError:
            reading.is_repeatable = False
            raise
        reading.asked.append((self._transport, request, answer))
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        self._polls.reading.is_repeatable = False
        return self._transport.stream(request, idle_timeout)
