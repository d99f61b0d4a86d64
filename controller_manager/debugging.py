"""What the threads of the process do, for its administrator: `/debug/threads` and `/debug/profile?seconds=N`.

v1.6 serves Go's pprof to everybody. These pages are text, off by default, and on loopback only, so that
`kubectl port-forward` is the way to them. They show functions and lines, no values.
"""

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from urllib.parse import parse_qs, urlsplit

import structlog

from controller_manager.addresses import parse_address
from controller_manager.health import listening
from ports.clock import Clock
from ports.http_server import Server, answer_with
from ports.proxies import is_loopback
from ports.stopping import Stop
from ports.transport import Request, Response

_log = structlog.get_logger(__name__)

_PERIOD = 0.01
"""Seconds between two samples."""
_DEFAULT_SECONDS, _MOST_SECONDS = 10, 60
_DEEPEST = 100
"""Frames of a stack in a profile, from the innermost outwards."""


def loopback_address(text: str) -> str:
    """Check a listen address on loopback and return it unchanged. Raises ValueError."""
    host, _ = parse_address(text)
    if not is_loopback(host):
        raise ValueError(f"{text!r} is not on loopback, and these pages have no authentication; write 127.0.0.1:6061")
    return text


class DebugServer:
    """The server of both pages. It takes one profile at a time."""

    def __init__(self, address: str, clock: Clock, flag: str = "--debug-addr") -> None:
        """`address` is `host:port` on loopback; `flag` is the flag that error messages name."""
        self._address, self._clock, self._flag = address, clock, flag
        self._profiling = threading.Lock()
        self._stop = Stop()
        self._server: Server | None = None

    def start(self) -> None:
        """Listen and serve. Raises ListenError."""
        answer = answer_with(self.handle)
        self._server = listening(self._address, self._flag, lambda where: Server("debug", where, answer))
        self._server.start()
        _log.info("serving debug pages", port=self.port)

    @property
    def port(self) -> int:
        """The port of the server, after `start`."""
        assert self._server
        return self._server.port

    def stop(self) -> None:
        """End running profiles and all threads. Idempotent."""
        self._stop.set()
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def handle(self, request: Request) -> Response:
        """Return a page; 400 for a malformed number of seconds, 404, 405; 429 while another profile is taken."""
        target = urlsplit(request.url)
        if request.method != "GET":
            return _text(405, "only GET is supported\n")
        if target.path == "/debug/threads":
            return _text(200, "\n".join(_threads()))
        if target.path == "/debug/profile":
            return self._profile(parse_qs(target.query).get("seconds", [str(_DEFAULT_SECONDS)])[-1])
        return _text(404, "try /debug/threads or /debug/profile?seconds=N\n")

    def _profile(self, seconds: str) -> Response:
        if not (seconds.isascii() and seconds.isdecimal() and len(seconds) < 4 and 1 <= int(seconds) <= _MOST_SECONDS):
            return _text(400, f"seconds must be a number from 1 to {_MOST_SECONDS}\n")
        if not self._profiling.acquire(blocking=False):
            return _text(429, "another profile is being taken; try again when it has ended\n")
        try:
            return _text(200, "".join(f"{stack} {count}\n" for stack, count in self._sampled(int(seconds)).items()))
        finally:
            self._profiling.release()

    def _sampled(self, seconds: int) -> Counter[str]:
        """The number of samples of each stack, in the collapsed format of flame graphs, the most frequent first."""
        found = Counter[str]()
        end, own = self._clock.now() + seconds, threading.get_ident()
        while self._clock.now() < end and not self._stop.wait(self._clock, _PERIOD):
            found.update(f"{each.name};{_collapsed(frame)}" for each, frame in _frames() if each.ident != own)
        return Counter(dict(found.most_common()))


def _frames() -> Iterator[tuple[threading.Thread, FrameType]]:
    """Each thread with its innermost frame."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        if thread.ident in frames:
            yield thread, frames[thread.ident]


def _threads() -> Iterator[str]:
    for thread, frame in sorted(_frames(), key=lambda each: each[0].name):
        yield f"Thread {thread.name}:"
        yield "".join(traceback.format_stack(frame))


def _collapsed(frame: FrameType | None) -> str:
    found: list[str] = []
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        found.append(f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(found))


def _text(status: int, body: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, body.encode())
