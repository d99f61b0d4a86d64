"""The answers that servers give in one reconcile, shared by all its stages.

Where PD takes ten seconds for an answer, a reconcile in which each stage asks for itself takes minutes. So a question
is sent once, and whoever has it later, or at the same time, gets the same answer. What destroys is decided on reads of
its own (`member.evidence`), and a write makes answers old.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias
from urllib.parse import urlsplit

from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport

_Question: TypeAlias = tuple[str, str, bytes | None]

_CONFIGURATION = "/pd/api/v1/config"
"""Where PD shows its configuration, which changes only with what is written there."""


class SharedAnswers:
    """What was asked in one reconcile, and the answers. Safe for use by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[_Question, Future[Response]] = {}

    def of(self, request: Request, send: Callable[[Request], Response]) -> Response:
        """The answer to a read, which is sent unless it was before. Raises TransportError.

        A time-out is an answer, too: who asks again would wait as long. After another error the request is sent again.
        """
        question = request.method, request.url, request.body
        with self._lock:
            given = self._given.get(question)
            if given is None:
                own = self._given[question] = Future[Response]()
        if given is not None:
            return given.result()
        try:
            own.set_result(send(request))
        except BaseException as error:
            own.set_exception(error)
            if not isinstance(error, RequestTimeout):
                self._drop(question, own)
        return own.result()

    def forget(self, written: Request) -> None:
        """Have the questions be asked anew whose answers a write may have changed."""
        is_configured = _is_configuration(written.url)
        with self._lock:
            for question in list(self._given):
                if is_configured or not _is_configuration(question[1]):
                    del self._given[question]

    def _drop(self, question: _Question, given: Future[Response]) -> None:
        with self._lock:
            if self._given.get(question) is given:
                del self._given[question]


class SharingTransport:
    """Sends a read once in a reconcile."""

    def __init__(self, transport: Transport, answers: SharedAnswers) -> None:
        self._transport = transport
        self._answers = answers

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        return self._answers.of(request, self._transport.request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)


class ForgettingTransport:
    """Sends every request; after a write, what it may have changed is asked anew."""

    def __init__(self, transport: Transport, answers: SharedAnswers) -> None:
        self._transport = transport
        self._answers = answers

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if request.is_read:
            return self._transport.request(request)
        try:
            return self._transport.request(request)
        finally:
            self._answers.forget(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)


def _is_configuration(url: str) -> bool:
    return urlsplit(url).path.startswith(_CONFIGURATION)
