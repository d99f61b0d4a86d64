"""A server that sends exactly the given bytes, over plain TCP or TLS."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PATIENCE = 5.0


class Peer:
    """One connection, from the server's side."""

    def __init__(self, connected: socket.socket, closing: threading.Event) -> None:
        self._socket = connected
        self._reader = connected.makefile("rb")
        self._closing = closing

    def head(self) -> str:
        """The next request line and headers; the body is read and dropped. Empty at the end of the connection."""
        lines = []
        while (line := self._reader.readline().decode("latin-1")).strip():
            lines.append(line)
        head = "".join(lines)
        length = [line.split(":")[1] for line in lines if line.lower().startswith("content-length:")]
        self._reader.read(int(length[0]) if length else 0)
        return head

    def common_name(self) -> str:
        """The name in the client's TLS certificate."""
        assert isinstance(self._socket, ssl.SSLSocket)
        certificate: dict[str, Any] = self._socket.getpeercert() or {}
        return next(str(value) for ((key, value),) in certificate["subject"] if key == "commonName")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(self, status: int, body: bytes = b"", *headers: str) -> None:
        head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *headers))
        self.send(head.encode() + b"\r\n" + body)

    def begin_chunks(self) -> None:
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def hang(self, seconds: float = _PATIENCE) -> bool:
        """Stay silent for `seconds` or until the test ends; True if the test ended."""
        return self._closing.wait(seconds)


class RawServer:
    """Runs `serve` for each connection, in a thread."""

    def __init__(self, serve: Callable[[Peer], None], context: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._context = context
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept, name="server")]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            connected.settimeout(_PATIENCE)
            self.connections += 1
            thread = threading.Thread(target=self._handle, args=(connected,), name="server-connection")
            self._threads.append(thread)
            thread.start()

    def _handle(self, connected: socket.socket) -> None:
        with contextlib.suppress(OSError), connected:
            wrapped = self._context.wrap_socket(connected, server_side=True) if self._context else connected
            with wrapped:
                peer = Peer(wrapped, self._closing)
                with peer._reader:
                    self._serve(peer)


@dataclass(frozen=True)
class Certificates:
    """An authority, and a server certificate for 127.0.0.1 that it signed."""

    ca: bytes
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates and is not installed")
    directory = tmp_path_factory.mktemp("certificates")
    files = {name: directory / name for name in ("ca.pem", "ca.key", "server.pem", "server.key")}

    def make(*arguments: str) -> None:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
        subprocess.run(["openssl", "req", "-x509", *curve, *arguments], check=True, capture_output=True)

    make("-subj", "/CN=authority", "-keyout", str(files["ca.key"]), "-out", str(files["ca.pem"]))
    signed = ("-CA", str(files["ca.pem"]), "-CAkey", str(files["ca.key"]))
    address = ("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE")
    out = ("-keyout", str(files["server.key"]), "-out", str(files["server.pem"]))
    make("-subj", "/CN=server", *signed, *address, *out)
    return Certificates(files["ca.pem"].read_bytes(), files["server.pem"], files["server.key"])


@contextlib.contextmanager
def serving(serve: Callable[[Peer], None], context: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(serve, context)
    try:
        yield server
    finally:
        server.close()
