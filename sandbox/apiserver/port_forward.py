"""The subresource `pods/portforward`, over SPDY: each pair of streams is a connection to a port of a pod."""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BufferedReader

from ports.transport import Request
from sandbox.apiserver import spdy

_UPGRADE = "spdy/3.1"
_PROTOCOL = "portforward.k8s.io"
_BUFFER = 32768

ACCEPTED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    b"X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n"
)
"""The answer after which the client speaks SPDY."""

Dial = Callable[[str, int], socket.socket]
"""Connects to a port of a pod by its address. Raises OSError."""


def no_dial(address: str, port: int) -> socket.socket:
    """On a server without a kubelet, no port can be reached."""
    raise ConnectionRefusedError(f"{address}:{port}: there is no kubelet")


def is_upgrade(request: Request) -> bool:
    """True if a client asks to forward ports over SPDY; kubectl does so when a server refuses its WebSocket."""
    return request.url.partition("?")[0].endswith("/portforward") and _asks_for_spdy(request.headers)


def _asks_for_spdy(headers: Mapping[str, str]) -> bool:
    return headers.get("upgrade", "").lower() == _UPGRADE and _PROTOCOL in headers.get("x-stream-protocol-version", "")


@dataclass(slots=True)
class _Forwarded:
    """A connection of the client: the streams of its errors and of its data, and the socket to the pod."""

    errors: int
    port: int
    data: int = 0
    target: socket.socket | None = None


@dataclass(slots=True)
class PortForward:
    """The connections of one client to one pod."""

    pod: str
    """Its name, for messages."""
    address: str
    dial: Dial
    _by_request: dict[str, _Forwarded] = field(default_factory=dict)
    _by_stream: dict[int, _Forwarded] = field(default_factory=dict)

    def serve(self, connection: socket.socket, reader: BufferedReader) -> None:
        """Forward until the client ends the connection. Raises OSError, Malformed."""
        session = spdy.Session(connection, reader)
        try:
            while (frame := session.read()) is not None:
                if isinstance(frame, spdy.Opened):
                    self._open(session, frame)
                elif isinstance(frame, spdy.Reset) or frame.stream in self._by_stream:
                    self._pass(frame)
        finally:
            for forwarded in list(self._by_request.values()):
                _hang_up(forwarded)

    def _open(self, session: spdy.Session, opened: spdy.Opened) -> None:
        """The client opens the stream of errors first, then the one of data."""
        session.accept(opened.stream)
        request, port = opened.headers.get("requestid", ""), opened.headers.get("port", "")
        if opened.headers.get("streamtype") == "error" and port.isdecimal():
            self._by_request[request] = _Forwarded(opened.stream, int(port))
        elif (forwarded := self._by_request.get(request)) is not None:
            forwarded.data = opened.stream
            self._by_stream[opened.stream] = forwarded
            self._connect(session, forwarded)
        else:
            session.reset(opened.stream)

    def _connect(self, session: spdy.Session, forwarded: _Forwarded) -> None:
        try:
            forwarded.target = self.dial(self.address, forwarded.port)
        except OSError as error:
            what = f"an error occurred forwarding to port {forwarded.port} of pod {self.pod}: {error.strerror or error}"
            session.send(forwarded.errors, what.encode(), ends=True)
            session.send(forwarded.data, b"", ends=True)
            return
        name = f"port-forward-{self.pod}:{forwarded.port}"
        threading.Thread(target=_return, args=(session, forwarded), name=name, daemon=True).start()

    def _pass(self, frame: spdy.Data | spdy.Reset) -> None:
        forwarded = self._by_stream.get(frame.stream)
        if forwarded is None or forwarded.target is None:
            return
        if isinstance(frame, spdy.Reset):
            _hang_up(forwarded)
            return
        with contextlib.suppress(OSError):
            forwarded.target.sendall(frame.content)
            if frame.ends:
                forwarded.target.shutdown(socket.SHUT_WR)


def _return(session: spdy.Session, forwarded: _Forwarded) -> None:
    """Send what the pod sends, until it ends."""
    target = forwarded.target
    assert target is not None
    with contextlib.suppress(OSError), target:
        target.settimeout(None)
        with contextlib.suppress(OSError):
            while content := target.recv(_BUFFER):
                session.send(forwarded.data, content)
        session.send(forwarded.data, b"", ends=True)
        session.send(forwarded.errors, b"", ends=True)


def _hang_up(forwarded: _Forwarded) -> None:
    if forwarded.target is not None:
        with contextlib.suppress(OSError):
            forwarded.target.shutdown(socket.SHUT_RDWR)
