"""Storage in memory with scripted failures, and a service with scripted answers."""

import http.server
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from backup_manager.storage.errors import ObjectMissing, StorageError
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.objects import PAGE, StoredObject
from backup_manager.storage.parts import Parts

WHERE = Location(Kind.S3, "bucket", "some/prefix")


class Memory:
    """An in-memory `Storage`; `fail` is called before each call and may raise."""

    batch = 10

    def __init__(self, objects: dict[str, bytes], fail: Callable[[str], None] = lambda _verb: None) -> None:
        self.location = WHERE
        self.objects = objects
        self.fail = fail
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def pages(self, size: int = PAGE) -> Iterator[Sequence[StoredObject]]:
        self._called("list")
        there = sorted(self.objects.items())
        for start in range(0, len(there), size):
            yield [StoredObject(key, len(content)) for key, content in there[start : start + size]]

    def read(self, key: str) -> bytes:
        self._called("read")
        if key not in self.objects:
            raise ObjectMissing(f"read {key} in", self.location, "it is not there")
        return self.objects[key]

    def size(self, key: str) -> int | None:
        self._called("size")
        return len(self.objects[key]) if key in self.objects else None

    def download(self, key: str, parts: Parts) -> Iterator[bytes]:
        content = self.read(key)
        for start in range(0, len(content), parts.size):
            yield content[start : start + parts.size]

    def upload(self, key: str, chunks: Iterable[bytes], _parts: Parts) -> None:
        content = b"".join(chunks)
        self._called("upload")
        self.objects[key] = content

    def write(self, key: str, content: bytes) -> None:
        self._called("write")
        self.objects[key] = content

    def delete(self, keys: Sequence[str]) -> None:
        self._called("delete")
        with self._lock:
            for key in keys:
                self.objects.pop(key, None)

    def _called(self, verb: str) -> None:
        with self._lock:
            self.calls.append(verb)
        self.fail(verb)


def failing(verb: str, *times: int, error: StorageError | None = None) -> Callable[[str], None]:
    """Raise `error` at the calls of `verb` with these numbers, counted from 1; without a number, at all."""
    seen = 0

    def fail(called: str) -> None:
        nonlocal seen
        if called != verb:
            return
        seen += 1
        if not times or seen in times:
            raise error or StorageError(verb, WHERE, "status 503")

    return fail


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """The URL of a service that gives every request the same answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="service")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
