"""A reverse proxy to PD's dashboard that passes only `/dashboard` (objects.md 10.2)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from ports.http_server import Answer, Conversation, end_to_end
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_CONNECT = 10.0
_SILENCE = 60.0
"""Seconds; the dashboard collects logs and profiles, which takes time."""


class DashboardProxy:
    """Passes requests on to PD."""

    def __init__(self, transport: Transport, pd_url: str) -> None:
        """`pd_url` is the URL of PD's Service, e.g. `https://demo-pd:2379`."""
        self._transport = transport
        self._pd_url = pd_url

    @contextmanager
    def open(self, request: Request) -> Iterator[ByteStream]:
        """PD's answer to a request whose URL is a path.

        Raises TransportError, also for any other path than the dashboard's.
        """
        if not _is_dashboard(request.url):
            raise TransportError(request.method, request.url, "only /dashboard is passed on to PD")
        onward = Request(
            request.method, self._pd_url + request.url, end_to_end(request.headers), request.body, _CONNECT + _SILENCE
        )
        stream = self._transport.stream(onward, idle_timeout=_SILENCE)
        try:
            yield stream
        finally:
            stream.close()


def answer_through(proxy: DashboardProxy) -> Answer:
    """An `Answer` that streams PD's answers; 502 if there is none."""

    def answer(conversation: Conversation, request: Request) -> None:
        try:
            with proxy.open(request) as stream:
                conversation.send_stream(stream)
        except TransportError as error:
            conversation.close_connection = True
            with suppress(OSError):
                conversation.send_response_of(Response(502, {"connection": "close"}, f"{error}\n".encode()))

    return answer


def _is_dashboard(url: str) -> bool:
    path = urlsplit(url).path
    return path.startswith("/dashboard") and ".." not in path.split("/")
