"""Sockets that stop reading at a deadline (lifecycle.md F53).

A socket's own timeout restarts with every read, so a peer that trickles single bytes holds its reader forever. These
sockets have one deadline for the whole answer.
"""

import contextlib
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

from ports.clock import Clock, SystemClock

Dial = Callable[[HTTPConnection], socket.socket]
"""Connects for an HTTP connection, or raises an error of urllib3 (`ports.socks.through`)."""


class TooManyBytes(OSError):
    """Raised when a part of an answer exceeds its maximum size. The message names the part and the maximum."""


class _Deadline:
    """The deadline of a socket and the maximum number of bytes; None means the plain timeout, or no maximum.

    The last read may exceed the maximum. `too_many` is the error beyond it.
    """

    _clock: Clock = SystemClock()
    """Real sockets wait in real time, even in a program with a virtual clock."""

    deadline: float | None = None
    unread: int | None = None
    too_many: str = ""

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
        """Count received bytes. Raises TooManyBytes."""
        if self.unread is not None:
            self.unread -= received
            if self.unread < 0:
                raise TooManyBytes(self.too_many)
        return received


class DeadlineReads(_Deadline):
    """Gives a class of sockets, which follows it among the bases, a read deadline."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Like `socket.recv_into`. Raises TimeoutError after the deadline, TooManyBytes."""
        wire: Any = super()
        if left := self.remaining():
            wire.settimeout(left)
        return self.count(wire.recv_into(*arguments, **options))


class DeadlineSocket(DeadlineReads, socket.socket):
    """A plain socket with a read deadline."""


class DeadlineTlsSocket(DeadlineReads, ssl.SSLSocket):
    """A TLS socket with a read deadline."""

    def recv(self, *arguments: Any, **options: Any) -> bytes:
        """Like `SSLSocket.recv`. Closes a socket whose peer was gone before the handshake, which `ssl` leaves open."""
        try:
            return super().recv(*arguments, **options)
        except OSError as error:
            if getattr(self, "_sslobj", None) is None and error.errno not in (errno.ENOTCONN, errno.EINVAL):
                self.close()
            raise


class DeadlineConnection(HTTPConnection):
    """A connection that must read an answer, headers and body, within its read timeout.

    `longest_head` is the maximum size of status line and headers in bytes, including interim answers. `dial` connects
    in the place of urllib3.
    """

    longest_head: int | None = None
    reading: socket.socket | None = None
    dial: Dial | None = None

    def _new_conn(self) -> socket.socket:
        dial = type(self).dial
        return with_deadline(dial(self) if dial else super()._new_conn())

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        """Start the deadline and return the answer."""
        self.reading = _armed(self.sock, self.timeout)
        with read_at_most(self.reading, self.longest_head, "headers"):
            return super().getresponse()


class DeadlineTlsConnection(HTTPSConnection):
    """A DeadlineConnection over TLS. Its context must create DeadlineTlsSockets. The deadline also covers a proxy's
    tunnel.
    """

    longest_head: int | None = None
    reading: socket.socket | None = None
    dial: Dial | None = None

    def _new_conn(self) -> socket.socket:
        dial = type(self).dial
        plain = with_deadline(dial(self) if dial else super()._new_conn())
        plain.arm(plain.gettimeout())
        return plain

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        """Start the deadline and return the answer."""
        self.reading = _armed(self.sock, self.timeout)
        with read_at_most(self.reading, self.longest_head, "headers"):
            return super().getresponse()


def limit_silence(connected: socket.socket, seconds: float) -> None:
    """Allow each further read this many seconds, without a common deadline."""
    if isinstance(connected, _Deadline):
        connected.arm(None)
    # with the headers of a short answer the body may have been read as well, and the socket closed
    with contextlib.suppress(OSError):
        connected.settimeout(seconds)


def arm(connected: socket.socket, seconds: float | None) -> None:
    """Allow all further reads together this many seconds; None means no deadline."""
    if isinstance(connected, _Deadline):
        connected.arm(seconds)


def with_deadline(plain: socket.socket) -> DeadlineSocket:
    """The same connection as a socket that gets a deadline when it is armed."""
    timeout = plain.gettimeout()
    wrapped = DeadlineSocket(plain.family, plain.type, plain.proto, plain.detach())
    wrapped.settimeout(timeout)
    return wrapped


@contextlib.contextmanager
def read_at_most(connected: Any, count: int | None, part: str) -> Iterator[None]:
    """Limit the bytes of a part of an answer, which are read within the block. None means no limit."""
    if not isinstance(connected, _Deadline):
        yield
        return
    connected.unread, connected.too_many = count, f"the server sent more than {count} bytes of {part}"
    try:
        yield
    finally:
        connected.unread = None


def _armed(sock: Any, timeout: Any) -> socket.socket | None:
    if isinstance(sock, _Deadline):
        sock.arm(timeout if isinstance(timeout, int | float) else None)
    return sock if isinstance(sock, socket.socket) else None
