"""A SOCKS5 proxy on loopback (RFC 1928, 1929) that connects every name to one local port."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

_ADDRESS_LENGTH = {1: 4, 4: 16}
_LOGIN, _NONE = 2, 0
_PATIENCE = 10.0


@dataclass
class SocksProxy:
    """`asked` collects what clients want to reach, `logins` their users and passwords.

    `reply` is the code of each answer; 5 means that the server refused.
    """

    target: int
    reply: int = 0
    wants_login: bool = False
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    asked: list[tuple[str, int]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    clients: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="socks-client")
            self.clients.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, struct.error):
            self._negotiate(client)
            if self.reply:
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                back = threading.Thread(target=_copy, args=(server, client), name="socks-server")
                back.start()
                _copy(client, server)
                back.join(_PATIENCE)

    def _negotiate(self, client: socket.socket) -> None:
        _, count = _exactly(client, 2)
        _exactly(client, count)
        client.sendall(bytes([5, _LOGIN if self.wants_login else _NONE]))
        if self.wants_login:
            _, length = _exactly(client, 2)
            user = _exactly(client, length).decode()
            self.logins.append((user, _exactly(client, _exactly(client, 1)[0]).decode()))
            client.sendall(b"\x01\x00")
        _, command, _, kind = _exactly(client, 4)
        assert command == 1
        self.asked.append((self._host(client, kind), struct.unpack(">H", _exactly(client, 2))[0]))
        client.sendall(bytes([5, self.reply, 0, 1]) + bytes(6))

    def _host(self, client: socket.socket, kind: int) -> str:
        if kind == 3:
            return _exactly(client, _exactly(client, 1)[0]).decode()
        family = socket.AF_INET if kind == 1 else socket.AF_INET6
        return socket.inet_ntop(family, _exactly(client, _ADDRESS_LENGTH[kind]))


@contextlib.contextmanager
def socks_proxy(target: int, *, reply: int = 0, wants_login: bool = False) -> Iterator[SocksProxy]:
    proxy = SocksProxy(target, reply, wants_login)
    thread = threading.Thread(target=proxy.accept, name="socks-proxy")
    thread.start()
    try:
        yield proxy
    finally:
        proxy.listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        proxy.listener.close()
        for client in proxy.clients:
            client.join(_PATIENCE)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def _exactly(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = client.recv(count - len(received))
        if not piece:
            raise ConnectionAbortedError
        received += piece
    return received
