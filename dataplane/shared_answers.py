"""The answers of servers in one reconcile, shared by all its stages.

If PD takes ten seconds for an answer, a reconcile whose stages all ask for themselves takes minutes. Each read is
therefore sent once, and later or concurrent callers get the same answer. Destructive decisions use reads of their own
(`member.evidence`), and a write invalidates answers.
"""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias
from urllib.parse import urlsplit

from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport

_Question: TypeAlias = tuple[str, str, bytes | None]

_CONFIGURATION = "/pd/api/v1/config"
"""The route of PD's configuration, which changes only by writes to this route."""


class SharedAnswers:
    """The reads of one reconcile and their answers. Thread-safe.

    Without it a scale-in of TiKV costs 73 requests to servers, not 54 (bench/memories.json).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[_Question, Future[Response]] = {}

    def of(self, request: Request, send: Callable[[Request], Response]) -> Response:
        """The answer to a read; only the first call sends it. Raises TransportError.

        A time-out counts as an answer, because a second try would wait as long. After any other error the next call
        sends again. A long answer is dropped when its memory is needed.
        """
        question = request.method, request.url, request.body
        with self._lock:
            given = self._given.get(question)
            if given is None:
                own = self._given[question] = Future[Response]()
        if given is not None:
            return given.result()
        try:
            answer = send(request)
            if answer.drop_with:
                answer.drop_with(self._drop_later(question, own))
            own.set_result(answer)
        except BaseException as error:
            own.set_exception(error)
            if not isinstance(error, RequestTimeout):
                self._drop(question, own)
        return own.result()

    def forget(self, written: Request) -> None:
        """Drop the answers that a write may have changed."""
        is_configured = _is_configuration(written.url)
        with self._lock:
            for question in list(self._given):
                if is_configured or not _is_configuration(question[1]):
                    del self._given[question]

    def _drop_later(self, question: _Question, given: Future[Response]) -> Callable[[], None]:
        """A function that drops an answer without keeping it in memory itself."""
        answers, held = weakref.ref(self), weakref.ref(given)

        def drop() -> None:
            still, future = answers(), held()
            if still is not None and future is not None:
                still._drop(question, future)

        return drop

    def _drop(self, question: _Question, given: Future[Response]) -> None:
        with self._lock:
            if self._given.get(question) is given:
                del self._given[question]


class SharingTransport:
    """Sends each read once per reconcile."""

    def __init__(self, transport: Transport, answers: SharedAnswers) -> None:
        self._transport = transport
        self._answers = answers

    def request(self, request: Request) -> Response:
        return self._answers.of(request, self._transport.request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


class ForgettingTransport:
    """Sends every request; a write drops the answers that it may have changed."""

    def __init__(self, transport: Transport, answers: SharedAnswers) -> None:
        self._transport = transport
        self._answers = answers

    def request(self, request: Request) -> Response:
        if request.is_read:
            return self._transport.request(request)
        try:
            return self._transport.request(request)
        finally:
            self._answers.forget(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


def _is_configuration(url: str) -> bool:
    return urlsplit(url).path.startswith(_CONFIGURATION)
