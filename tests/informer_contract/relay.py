"""A way to a server that can break: TCP on 127.0.0.1, bytes passed on as they are, TLS included."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

_CHUNK = 1 << 16
_TRICKLE = 1 << 12


class Relay:
    """Listens between construction and `close`, always on the same port."""

    def __init__(self, target: int) -> None:
        """`target` is the server's port on 127.0.0.1."""
        self._target = target
        self._pause = 0.0
        self._lock = threading.Lock()
        self._links: list[_Link] = []
        self._threads: list[threading.Thread] = []
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """While the block runs, connections are broken and refused."""
        self._hang_up()
        try:
            yield
        finally:
            self._listener = self._listen(self.port)

    def cut(self) -> None:
        """Break all connections; new ones are welcome."""
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            link.close()

    def freeze(self) -> None:
        """Silently pass nothing more over the open connections. New ones work."""
        with self._lock:
            for link in self._links:
                link.frozen = True

    def trickle(self, pause: float) -> None:
        """Pass on the bytes of new connections in small pieces, each after this many real seconds."""
        self._pause = pause

    def close(self) -> None:
        """End everything; no thread is left."""
        self._hang_up()
        for thread in self._threads:
            thread.join()

    def _hang_up(self) -> None:
        # closing alone would leave a thread that waits in accept
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        self._spawn("relay-accept", self._accept, listener)
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                self._join_to_target(near)

    def _join_to_target(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        link = _Link(near, far, self._pause)
        with self._lock:
            self._links.append(link)
        self._spawn("relay-up", link.pump, near, far)
        self._spawn("relay-down", link.pump, far, near)

    def _spawn(self, name: str, body: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=body, args=arguments, name=name)
        self._threads.append(thread)
        thread.start()


class _Link:
    """Two sockets joined."""

    def __init__(self, near: socket.socket, far: socket.socket, pause: float) -> None:
        self.frozen = False
        self._pause = pause
        self._closed = threading.Event()
        self._ends = (near, far)
        for end in self._ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass on bytes; a frozen link loses them."""
        with contextlib.suppress(OSError):
            while data := source.recv(_TRICKLE if self._pause else _CHUNK):
                self._closed.wait(self._pause)
                if not self.frozen:
                    sink.sendall(data)
        if not self.frozen:
            self.close()

    def close(self) -> None:
        """End both connections."""
        self._closed.set()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
