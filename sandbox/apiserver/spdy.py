"""The server's side of SPDY/3.1, as much as kubectl needs (draft-mbelshe-httpbis-spdy-00; no flow control)."""

import socket
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_FURTHER = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY = b"".join(
    len(word).to_bytes(4, "big") + word.replace("_", " ").encode() for word in _WORDS.split()
) + _FURTHER.encode("ascii")
"""What both sides expect in headers (2.6.10.1 of the draft)."""

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING = 1, 2, 3, 6
_VERSION = 3
_CONTROL = 0x80
_ENDS = 1
_CANCEL = 5
_LARGEST = 1 << 16
"""Bytes of a control frame, and of its headers."""


class Malformed(Exception):
    """Raised for bytes that are no SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream that the client opens; names of headers are lower case."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; the client sends no more if it `ends`."""

    stream: int
    content: bytes
    ends: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream that the client gives up."""

    stream: int


class Session:
    """One connection. One thread reads; any thread sends."""

    def __init__(self, connection: socket.socket, reader: BufferedReader) -> None:
        self._connection = connection
        self._reader = reader
        self._lock = threading.Lock()
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def read(self) -> Opened | Data | Reset | None:
        """The next frame that concerns a stream; None at the end. Raises Malformed, OSError."""
        while len(head := self._reader.read(8)) == 8:
            length = int.from_bytes(head[5:], "big")
            if head[0] & _CONTROL:
                frame = self._control(int.from_bytes(head[2:4], "big"), length)
                if frame is not None:
                    return frame
            else:
                content = self._exactly(length)
                return Data(_stream(head), content, bool(head[4] & _ENDS))
        return None

    def accept(self, stream: int) -> None:
        """Answer a stream that the client has opened. Raises OSError."""
        with self._lock:
            block = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._connection.sendall(_control(_SYN_REPLY, _number(stream) + block))

    def send(self, stream: int, content: bytes, *, ends: bool = False) -> None:
        """Send bytes of a stream, the last ones if it `ends`. Raises OSError."""
        head = _number(stream) + bytes([_ENDS if ends else 0]) + len(content).to_bytes(3, "big")
        with self._lock:
            self._connection.sendall(head + content)

    def reset(self, stream: int) -> None:
        """Give up a stream. Raises OSError."""
        with self._lock:
            self._connection.sendall(_control(_RST_STREAM, _number(stream) + _number(_CANCEL)))

    def _control(self, kind: int, length: int) -> Opened | Reset | None:
        if length > _LARGEST:
            raise Malformed(f"a control frame of {length} bytes")
        body = self._exactly(length)
        if kind == _SYN_STREAM:
            return Opened(_stream(body), self._headers(body[10:]))
        if kind == _RST_STREAM:
            return Reset(_stream(body))
        if kind == _PING:
            with self._lock:
                self._connection.sendall(_control(_PING, body))
        return None

    def _headers(self, block: bytes) -> Mapping[str, str]:
        try:
            plain = self._inflate.decompress(block, _LARGEST)
        except zlib.error as error:
            raise Malformed(str(error)) from None
        texts, rest = [], plain[4:]
        while len(rest) >= 4 and not self._inflate.unconsumed_tail:
            size = int.from_bytes(rest[:4], "big")
            texts.append(rest[4 : 4 + size].decode("utf-8", "replace"))
            rest = rest[4 + size :]
        return dict(zip(texts[::2], texts[1::2], strict=False))

    def _exactly(self, length: int) -> bytes:
        content = self._reader.read(length)
        if len(content) < length:
            raise Malformed("the connection ends within a frame")
        return content


def _control(kind: int, body: bytes) -> bytes:
    head = bytes([_CONTROL, _VERSION]) + kind.to_bytes(2, "big") + bytes(1) + len(body).to_bytes(3, "big")
    return head + body


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _stream(data: bytes) -> int:
    return int.from_bytes(data[:4], "big") & 0x7FFFFFFF
