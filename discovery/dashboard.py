"""PD's dashboard through discovery: a reverse proxy for `/dashboard` and nothing else (objects.md 10.2)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from ports.transport import ByteStream, Request, Transport, TransportError

_CONNECT = 10.0
_SILENCE = 60.0
"""Seconds; the dashboard collects logs and profiles, which takes a while."""

_OF_ONE_HOP = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class DashboardProxy:
    """Passes requests on to PD."""

    def __init__(self, transport: Transport, pd_url: str) -> None:
        """`pd_url` is where PD's Service is, such as `https://demo-pd:2379`."""
        self._transport = transport
        self._pd_url = pd_url

    @contextmanager
    def open(self, request: Request) -> Iterator[ByteStream]:
        """PD's answer to a request whose URL is a path.

        Raises TransportError, also for a path that is not passed on.
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


def end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a proxy passes on."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_HOP | named}


def _is_dashboard(url: str) -> bool:
    path = urlsplit(url).path
    return path.startswith("/dashboard") and ".." not in path.split("/")
