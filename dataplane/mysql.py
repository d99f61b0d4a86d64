"""As much of MySQL's client protocol as it takes to carry out statements without rows, as a user without a password.

Packets have a header of three bytes with their length and one with their number. The server greets; the client answers
with what it can do and who it is; then each statement is a packet, and so is each answer: OK (0x00) or an error (0xff).
A user without a password proves nothing, so every method of authentication comes to an empty answer.
"""

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Sequence

from ports.clock import Clock
from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TlsError

_OK, _SWITCH, _ERROR = 0x00, 0xFE, 0xFF
_VERSION = 10
_QUERY = b"\x03"
_QUIT = b"\x01"
_SSL = 0x800
_CAPABILITIES = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x80000
"""Long passwords, protocol 4.1, transactions, secure connections, named methods of authentication."""

_UTF8 = 45
_MOST = 1 << 24


class MySqlConnector:
    """See `SqlConnector`: over TCP, and TLS where the login says so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`."""
        with _typed_errors(login), _connected(login) as channel:
            deadline = self._clock.now() + login.timeout
            channel.limit = lambda: max(deadline - self._clock.now(), 0.001)
            _log_in(channel, login)
            for statement in statements:
                channel.begin(_QUERY + statement.encode())
                _require_ok(channel.receive())
            channel.begin(_QUIT)


class _Channel:
    """Packets over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.limit: Callable[[], float] = lambda: 1.0
        """Seconds that are left."""
        self._number = 0

    def begin(self, payload: bytes) -> None:
        """Send the first packet of an exchange."""
        self._number = 0
        self.send(payload)

    def send(self, payload: bytes) -> None:
        self.connection.settimeout(self.limit())
        self.connection.sendall(struct.pack("<I", len(payload))[:3] + bytes([self._number]) + payload)
        self._number += 1

    def receive(self) -> bytes:
        """The next packet, which is not empty."""
        header = self._read(4)
        self._number = header[3] + 1
        return self._read(max(int.from_bytes(header[:3], "little"), 1))

    def _read(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            self.connection.settimeout(self.limit())
            piece = self.connection.recv(count - len(content))
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            content += piece
        return content


def _log_in(channel: _Channel, login: SqlLogin) -> None:
    greeting = channel.receive()
    if greeting[0] == _ERROR:
        raise _refusal(greeting)
    if greeting[0] != _VERSION:
        raise ConnectionResetError(f"the server speaks version {greeting[0]} of the protocol, not {_VERSION}")
    capabilities = _CAPABILITIES | (_SSL if login.ca else 0)
    client = struct.pack("<IIB23x", capabilities, _MOST, _UTF8)
    if login.ca:
        channel.send(client)
        context = ssl.create_default_context(cadata=login.ca)
        channel.connection.settimeout(channel.limit())
        channel.connection = context.wrap_socket(channel.connection, server_hostname=login.host)
    channel.send(client + login.user.encode() + b"\0" + b"\0" + b"mysql_native_password\0")
    answer = channel.receive()
    if answer[0] == _SWITCH:
        channel.send(b"")
        answer = channel.receive()
    _require_ok(answer)


def _require_ok(answer: bytes) -> None:
    if answer[0] == _ERROR:
        raise _refusal(answer)
    if answer[0] != _OK:
        raise ConnectionResetError(f"the server answered with a packet of the kind {answer[0]:#x}")


def _refusal(packet: bytes) -> SqlRefused:
    code, text = int.from_bytes(packet[1:3], "little"), packet[3:].decode("utf-8", "replace")
    return SqlRefused(code, text[6:] if text.startswith("#") else text)


@contextlib.contextmanager
def _connected(login: SqlLogin) -> Iterator[_Channel]:
    connection = socket.create_connection((login.host, login.port), timeout=login.timeout)
    channel = _Channel(connection)
    try:
        yield channel
    finally:
        channel.connection.close()


@contextlib.contextmanager
def _typed_errors(login: SqlLogin) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise TlsError("SQL", login.url, str(error)) from error
    except TimeoutError as error:
        raise RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s") from error
    except (ConnectionRefusedError, socket.gaierror) as error:
        raise ConnectionRefused("SQL", login.url, str(error)) from error
    except OSError as error:
        raise ConnectionLost("SQL", login.url, str(error)) from error
