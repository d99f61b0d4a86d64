"""One call to one component: deadline, fence, retries of reads, redirects, typed answers (dataplane-apis.md 2).

A redirect repeats the same request at another member of the cluster. Only scheme, host and port of its location count,
and a location outside the cluster is an error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_none

from dataplane.addresses import Address
from dataplane.errors import ApiError, MalformedAnswer, NotInCluster, error_from_answer, misread, unavailable
from dataplane.timeouts import USUAL
from ports import effects
from ports.clock import Clock
from ports.fencing import Fence
from ports.structs import UNREADABLE
from ports.transport import (
    LONGEST_ANSWER,
    ConnectionLost,
    ConnectionRefused,
    Request,
    Response,
    Transport,
    TransportError,
)

_log = structlog.get_logger(__name__)

TIMEOUT = USUAL
"""Seconds that a call may take, including retries; slow endpoints get more (`dataplane.timeouts`)."""

_TRIES = 2
"""A kept-alive connection may have died unnoticed, and a Service may route the second try to a healthy member."""

_MOST_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD = frozenset({307, 308})
"""The redirects that keep the method. A write, or a request with a body, follows no others."""

BYTES_PER_VALUE = 32
"""The minimum average size of a value in the JSON of most APIs, in bytes. Denser JSON would take many times its size in
memory once decoded.
"""

_FEW_VALUES = 1000

_SUCCESS = 200

Admit = Callable[[str], Address]
"""Returns the address that a server announces if it belongs to the cluster. Raises NotInCluster."""

# no pause between tries: a reconcile step never sleeps (design.md 3.2)
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

    def __init__(
        self, transport: Transport, base_url: Address, fence: Fence, clock: Clock, admit: Admit | None = None
    ) -> None:
        """`admit` decides which redirects the caller follows; without it, none."""
        self._transport = transport
        self._fence = fence
        self._clock = clock
        self._admit = admit or _admit_none
        self.base_url = base_url
        self.host = urlsplit(base_url).hostname or ""

    def get(
        self,
        path: str,
        *,
        timeout: float = TIMEOUT,
        also: frozenset[int] = frozenset(),
        longest: int = LONGEST_ANSWER,
    ) -> Response:
        """Read. Statuses in `also` are answers, not errors; `longest` is in bytes. Raises Unavailable, ApiError."""
        return self._read(Request("GET", self.base_url + path, longest_answer=longest), path, timeout, also)

    def ask_json(
        self, path: str, body: object, decoder: msgspec.json.Decoder[_T], *, longest: int = LONGEST_ANSWER
    ) -> _T:
        """Send a read whose query is a JSON body, and decode the answer. Raises like `get_json`."""
        headers = {"content-type": "application/json"}
        asked = Request(
            "POST", self.base_url + path, headers, msgspec.json.encode(body), only_asks=True, longest_answer=longest
        )
        return self.decoded(path, self._read(asked, path, TIMEOUT, frozenset()), decoder)

    def _read(self, request: Request, path: str, timeout: float, also: frozenset[int]) -> Response:
        send = partial(_RETRYING, self._try, self._clock.now() + timeout)
        return self._checked(request.method, path, self._follow(request, path, send), also)

    def get_json(
        self,
        path: str,
        decoder: msgspec.json.Decoder[_T],
        *,
        timeout: float = TIMEOUT,
        longest: int = LONGEST_ANSWER,
        bytes_per_value: int = BYTES_PER_VALUE,
    ) -> _T:
        """Read and decode. Raises Unavailable, ApiError; MalformedAnswer names a field of the wrong type."""
        # no variable for the answer: an exception would keep it
        return self.decoded(
            path, self.get(path, timeout=timeout, longest=longest), decoder, bytes_per_value=bytes_per_value
        )

    def decoded(
        self,
        path: str,
        answer: Response,
        decoder: msgspec.json.Decoder[_T],
        *,
        bytes_per_value: int = BYTES_PER_VALUE,
    ) -> _T:
        """Decode an answer; `bytes_per_value` is the minimum average size of its values. Raises MalformedAnswer."""
        found = _decoded(answer.body, decoder, bytes_per_value)
        if isinstance(found, _Unreadable):
            # an exception keeps its frames, and a caller may keep the exception: do not keep the answer with it
            del answer
            raise self.malformed(path, found.reason)
        return found

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
        """Send a write, once. Statuses in `also` are answers, not errors. A body of bytes is sent unchanged.

        `done` is the log message after the component agreed, with the keys and values in `about`; leave it empty for a
        request that changes nothing by itself. Raises Unavailable, ApiError, LeaseExpired.
        """
        if body is None or isinstance(body, bytes):
            headers, payload = {}, body
        else:
            headers, payload = {"content-type": "application/json"}, msgspec.json.encode(body)
        request = Request(method, self.base_url + path, headers, payload, timeout)
        answer = self._follow(request, path, self._send_write)
        self._checked(method, path, answer, also)
        if done and answer.status not in also:
            _log.info(done, **about)
        return answer

    def malformed(self, path: str, reason: str, method: str = "GET") -> MalformedAnswer:
        """The error for a successful answer that cannot be understood. `reason` must not quote the answer."""
        return MalformedAnswer(method, self.base_url + path, _SUCCESS, reason=reason)

    def _follow(self, request: Request, path: str, send: Callable[[Request], Response]) -> Response:
        """The answer after redirects to other members. Raises Unavailable; ApiError for a redirect out of
        the cluster.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                answer = send(request)
            except TransportError as error:
                raise unavailable(error) from error
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            if request.method != "GET" and answer.status not in _SAME_METHOD:
                return answer
            request = replace(request, url=self._redirected(request, path, answer) + path)
        raise ApiError(request.method, self.base_url + path, answer.status, b"", "redirected more than three times")

    def _redirected(self, request: Request, path: str, answer: Response) -> Address:
        try:
            return self._admit(urljoin(request.url, answer.headers["location"]))
        except (NotInCluster, ValueError):
            reason = "redirected to an address that is no member of the cluster; the redirect was not followed"
            raise ApiError(request.method, self.base_url + path, answer.status, b"", reason) from None

    def _send_write(self, request: Request) -> Response:
        self._fence.check()
        effects.note()
        return self._transport.request(request)

    def _try(self, deadline: float, request: Request) -> Response:
        left = max(deadline - self._clock.now(), 0.1)
        effects.note()
        return self._transport.request(replace(request, timeout=left))

    def _checked(self, method: str, path: str, answer: Response, also: frozenset[int]) -> Response:
        if not 200 <= answer.status < 300 and answer.status not in also:
            raise error_from_answer(method, self.base_url + path, answer)
        return answer


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Raised when an answer violates the API; the reason does not quote the answer."""

    reason: str


def _decoded(body: bytes, decoder: msgspec.json.Decoder[_T], bytes_per_value: int) -> _T | _Unreadable:
    # every value but the first in a list or object follows a comma
    if body.count(b",") > _FEW_VALUES + len(body) // bytes_per_value:
        return _Unreadable("malformed answer: it has more values than its API allows")
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        return _Unreadable(misread(body, error))


def _admit_none(announced: str) -> Address:
    raise NotInCluster(announced)
