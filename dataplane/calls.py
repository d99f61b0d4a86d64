"""One call to one component: deadline, fence, retry of reads, typed answers (dataplane-apis.md 2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_none

from dataplane.errors import MalformedAnswer, error_from_answer, unavailable
from dataplane.timeouts import USUAL
from ports import effects
from ports.clock import Clock
from ports.fencing import Fence
from ports.structs import UNREADABLE
from ports.transport import ConnectionLost, ConnectionRefused, Request, Response, Transport, TransportError

_log = structlog.get_logger(__name__)

TIMEOUT = USUAL
"""Seconds that any call may take, tries included; one to a slow endpoint gets more (`dataplane.timeouts`)."""

_TRIES = 2
"""A kept connection may have died unnoticed, and a Service may send the second try to a member that lives."""

# no pause between tries: a step never waits for time (design.md 3.2)
_RETRYING = Retrying(
    stop=stop_after_attempt(_TRIES),
    retry=retry_if_exception_type((ConnectionLost, ConnectionRefused)),
    wait=wait_none(),
    sleep=lambda _: None,
    reraise=True,
)

_T = TypeVar("_T")


class Caller:
    """Sends requests to one base URL."""

    def __init__(self, transport: Transport, base_url: str, fence: Fence, clock: Clock) -> None:
        self._transport = transport
        self._fence = fence
        self._clock = clock
        self.base_url = base_url.rstrip("/")
        self.host = urlsplit(base_url).hostname or ""

    def get(self, path: str, *, timeout: float = TIMEOUT, also: frozenset[int] = frozenset()) -> Response:
        """Read; statuses of `also` are answers, not errors. Raises Unavailable, ApiError."""
        return self._read(Request("GET", self.base_url + path), path, timeout, also)

    def ask_json(self, path: str, body: object, decoder: msgspec.json.Decoder[_T]) -> _T:
        """Read what takes a body to ask for, and decode it. Raises as `get_json`."""
        headers = {"content-type": "application/json"}
        asked = Request("POST", self.base_url + path, headers, msgspec.json.encode(body), only_asks=True)
        return self.decoded(path, self._read(asked, path, TIMEOUT, frozenset()), decoder)

    def _read(self, request: Request, path: str, timeout: float, also: frozenset[int]) -> Response:
        deadline = self._clock.now() + timeout
        try:
            answer = _RETRYING(self._try, request, deadline)
        except TransportError as error:
            raise unavailable(error) from error
        return self._checked(request.method, path, answer, also)

    def get_json(self, path: str, decoder: msgspec.json.Decoder[_T], *, timeout: float = TIMEOUT) -> _T:
        """Read and decode. Raises Unavailable, ApiError; MalformedAnswer names the field that has a wrong type."""
        return self.decoded(path, self.get(path, timeout=timeout), decoder)

    def decoded(self, path: str, answer: Response, decoder: msgspec.json.Decoder[_T]) -> _T:
        """What an answer says. Raises MalformedAnswer."""
        try:
            return decoder.decode(answer.body)
        except UNREADABLE as error:
            raise self.malformed(path, answer, str(error)) from error

    def write(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        done: str,
        about: Mapping[str, object],
        also: frozenset[int] = frozenset(),
        timeout: float = TIMEOUT,
    ) -> Response:
        """Change something, once; statuses of `also` are answers, not errors. A body of bytes is sent as it is.

        `done` is what the log says once the component has agreed, `about` the keys and values of that line; empty for
        what changes nothing by itself. Raises Unavailable, ApiError, LeaseExpired.
        """
        if body is None or isinstance(body, bytes):
            headers, payload = {}, body
        else:
            headers, payload = {"content-type": "application/json"}, msgspec.json.encode(body)
        request = Request(method, self.base_url + path, headers, payload, timeout)
        self._fence.check()
        effects.note()
        try:
            answer = self._transport.request(request)
        except TransportError as error:
            raise unavailable(error) from error
        self._checked(method, path, answer, also)
        if done and answer.status not in also:
            _log.info(done, **about)
        return answer

    def malformed(self, path: str, answer: Response, reason: str) -> MalformedAnswer:
        """The error for an answer that cannot be understood."""
        text = answer.body.decode("utf-8", "replace")
        return MalformedAnswer("GET", self.base_url + path, answer.status, text, f"malformed answer: {reason}")

    def _try(self, request: Request, deadline: float) -> Response:
        left = max(deadline - self._clock.now(), 0.1)
        effects.note()
        return self._transport.request(replace(request, timeout=left))

    def _checked(self, method: str, path: str, answer: Response, also: frozenset[int]) -> Response:
        if not 200 <= answer.status < 300 and answer.status not in also:
            raise error_from_answer(method, self.base_url + path, answer)
        return answer
