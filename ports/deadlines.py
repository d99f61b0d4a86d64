"""Sockets that stop reading at a deadline (lifecycle.md F53).

A socket's own timeout starts anew with every read, so a peer that trickles one byte at a time holds its reader for
ever. These sockets know when the whole answer must be there.
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

from ports.clock import Clock, SystemClock


class HeadTooLong(OSError):
    """Raised when the head of an answer has more bytes than the connection reads."""


class _Deadline:
    """When a socket must have read everything, and how much it may read; None: its plain timeout applies, or no limit.

    A limit may be exceeded by what one read brings.
    """

    _clock: Clock = SystemClock()
    """Real sockets wait in real time, whatever clock the rest of the program has."""

    deadline: float | None = None
    unread: int | None = None

    def arm(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else self._clock.now() + seconds

    def remaining(self) -> float | None:
        if self.deadline is None:
            return None
        left = self.deadline - self._clock.now()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def count(self, received: int) -> int:
        """Note bytes that were read. Raises HeadTooLong."""
        if self.unread is not None:
            self.unread -= received
            if self.unread < 0:
                raise HeadTooLong("the head is too long")
        return received


class DeadlineSocket(_Deadline, socket.socket):
    """A plain socket with a deadline for reading."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """As `socket.recv_into`. Raises TimeoutError past the deadline, HeadTooLong."""
        if left := self.remaining():
            self.settimeout(left)
        return self.count(super().recv_into(*arguments, **options))


class DeadlineTlsSocket(_Deadline, ssl.SSLSocket):
    """A TLS socket with a deadline for reading."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """As `SSLSocket.recv_into`. Raises TimeoutError past the deadline, HeadTooLong."""
        if left := self.remaining():
            self.settimeout(left)
        return self.count(super().recv_into(*arguments, **options))


class DeadlineConnection(HTTPConnection):
    """A connection whose answer, headers and body, must be read within its read timeout.

    `longest_head` is how many bytes the status line and the headers may have, those of interim answers included.
    """

    longest_head: int | None = None
    reading: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        return with_deadline(super()._new_conn())

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        """The answer; from here on the deadline runs."""
        self.reading = _armed(self.sock, self.timeout)
        with _limited(self.reading, self.longest_head):
            return super().getresponse()


class DeadlineTlsConnection(HTTPSConnection):
    """The same over TLS; its context must make DeadlineTlsSockets. A proxy must open its tunnel in time, too."""

    longest_head: int | None = None
    reading: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        plain = with_deadline(super()._new_conn())
        plain.arm(plain.gettimeout())
        return plain

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        """The answer; from here on the deadline runs."""
        self.reading = _armed(self.sock, self.timeout)
        with _limited(self.reading, self.longest_head):
            return super().getresponse()


def limit_silence(connected: socket.socket, seconds: float) -> None:
    """From now on each read may take so long, and all of them together as long as they want."""
    if isinstance(connected, _Deadline):
        connected.arm(None)
    # a short answer may have been read to its end, and its socket closed, together with the headers
    with contextlib.suppress(OSError):
        connected.settimeout(seconds)


def arm(connected: socket.socket, seconds: float | None) -> None:
    """From now on all reads together may take so many seconds; None: as long as they want."""
    if isinstance(connected, _Deadline):
        connected.arm(seconds)


def with_deadline(plain: socket.socket) -> DeadlineSocket:
    """The same connection as a socket that has a deadline once it is armed."""
    timeout = plain.gettimeout()
    wrapped = DeadlineSocket(plain.family, plain.type, plain.proto, plain.detach())
    wrapped.settimeout(timeout)
    return wrapped


@contextlib.contextmanager
def _limited(connected: Any, count: int | None) -> Iterator[None]:
    """Limit what is read within the block."""
    if not isinstance(connected, _Deadline):
        yield
        return
    connected.unread = count
    try:
        yield
    finally:
        connected.unread = None


def _armed(sock: Any, timeout: Any) -> socket.socket | None:
    if isinstance(sock, _Deadline):
        sock.arm(timeout if isinstance(timeout, int | float) else None)
    return sock if isinstance(sock, socket.socket) else None
