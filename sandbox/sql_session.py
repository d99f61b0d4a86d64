"""A server's side of MySQL's client protocol: enough for statements and text results.

Users log in without a password; the server decides if that suffices.
"""

import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial

from ports.sql import SqlRefused
from sandbox.dataplane.sql import SqlServer
from sandbox.dataplane.tables import Rows

Secure = Callable[[], socket.socket]
"""Performs the TLS handshake on the connection and returns its replacement. Raises OSError."""

_PLUGIN = b"mysql_native_password"
_CAPABILITIES = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
"""LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH."""
_SSL = 0x800
_UTF8MB4 = 45
_AUTOCOMMIT = 2
_NONCE = b"12345678", b"901234567890"
"""Passwords are never compared."""
_QUIT, _QUERY, _PING = 0x01, 0x03, 0x0E
_OK = b"\0\0\0" + struct.pack("<HH", _AUTOCOMMIT, 0)
_END = b"\xfe" + struct.pack("<HH", 0, _AUTOCOMMIT)
_VAR_STRING = 0xFD
_OF_SESSION = ("SET NAMES ", "SET AUTOCOMMIT")


class SqlSession:
    """Speaks for a server. `secure`, if it speaks TLS, performs the handshake when a client requests it."""

    def __init__(self, connection: socket.socket, server: SqlServer, secure: Secure | None) -> None:
        self._connection = connection
        self._server = server
        self._secure = secure
        self._number = 0

    def run(self) -> None:
        """Serve until the client leaves. Raises OSError, TransportError."""
        self._send(self._greeting())
        login = self._receive()
        if self._secure is not None and struct.unpack("<I", login[:4])[0] & _SSL:
            self._connection = self._secure()
            login = self._receive()
        user = login[32:].partition(b"\0")[0].decode()
        if not self._answer(partial(self._server.login, user)):
            return
        while command := self._receive():
            if command[0] == _QUIT:
                return
            if command[0] == _QUERY:
                self._answer(partial(self._query, command[1:].decode()))
            else:
                self._send(_OK if command[0] == _PING else _refusal(1047, "Unknown command"))

    def _greeting(self) -> bytes:
        first, second = _NONCE
        low, high = (_CAPABILITIES | (_SSL if self._secure else 0)) & 0xFFFF, _CAPABILITIES >> 16
        flags = struct.pack("<HBHHB", low, _UTF8MB4, _AUTOCOMMIT, high, len(first + second) + 1)
        head = b"\x0a" + self._server.version.encode() + b"\0" + struct.pack("<I", 1) + first + b"\0"
        return head + flags + b"\0" * 10 + second + b"\0" + _PLUGIN + b"\0"

    def _query(self, statement: str) -> Rows | None:
        # concerns only the session
        return None if statement.upper().startswith(_OF_SESSION) else self._server.execute(statement)

    def _answer(self, do: Callable[[], Rows | None]) -> bool:
        """Let the server act; True if it succeeded."""
        try:
            rows = do()
        except SqlRefused as refused:
            self._send(_refusal(refused.code, refused.message))
            return False
        for packet in [_OK] if rows is None else _result(rows):
            self._send(packet)
        return True

    def _send(self, payload: bytes) -> None:
        self._connection.sendall(struct.pack("<I", len(payload) | self._number << 24) + payload)
        self._number = (self._number + 1) & 0xFF

    def _receive(self) -> bytes:
        """The next packet; empty if the client has disconnected."""
        head = self._read(4)
        if not head:
            return b""
        self._number = (head[3] + 1) & 0xFF
        return self._read(int.from_bytes(head[:3], "little"))

    def _read(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            piece = self._connection.recv(count - len(content))
            if not piece:
                return b""
            content += piece
        return content


def _result(rows: Rows) -> Iterator[bytes]:
    """The packets of a result: columns, then rows."""
    columns, *rest = rows
    yield _length(len(columns))
    for column in columns:
        names = b"".join(map(_text, ("def", "", "", "", column, column)))
        yield names + b"\x0c" + struct.pack("<HIBHBH", _UTF8MB4, 1 << 16, _VAR_STRING, 0, 0, 0)
    yield _END
    for row in rest:
        yield b"".join(map(_text, row))
    yield _END


def _text(text: str) -> bytes:
    content = text.encode()
    return _length(len(content)) + content


def _length(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfd" + number.to_bytes(3, "little")


def _refusal(code: int, message: str) -> bytes:
    state = "28000" if code == 1045 else "HY000"
    return b"\xff" + struct.pack("<H", code) + f"#{state}{message}".encode()
