"""A front for fake-gcs-server with the missing part of the XML API: uploads, whole or in parts.

Everything else passes. A whole object is forwarded as a signed upload, which fake-gcs-server supports.
"""

import hashlib
import http.server
import itertools
import sys
import threading
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import urllib3

_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "transfer-encoding"})


class GcsFront:
    """The state: unfinished uploads with their parts by number."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.pool = urllib3.PoolManager(retries=False, timeout=30.0)
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()


def main(port: int, server: str) -> None:
    """Run in front of the fake-gcs-server at `server` until the process ends."""

    class Handler(_Handler):
        state = GcsFront(server)

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: GcsFront

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        match self.command, query:
            case "POST", {"uploads": _}:
                self._begin()
            case "PUT", {"uploadId": [upload], "partNumber": [number]}:
                self._keep(upload, int(number), body)
            case "POST", {"uploadId": [upload]}:
                self._complete(upload)
            case "DELETE", {"uploadId": [upload]}:
                self.state.uploads.pop(upload, None)
                self._send(204, {}, b"")
            case "PUT", {} if not self.path.startswith(("/storage/", "/upload/")):
                self._put(body)
            case _:
                self._send(*self._passed_on(self.path, body))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

    def _begin(self) -> None:
        with self.state.lock:
            upload = f"upload-{next(self.state.numbers)}"
        self.state.uploads[upload] = {}
        result = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
        self._send(200, {"content-type": "application/xml"}, result.encode())

    def _keep(self, upload: str, number: int, body: bytes) -> None:
        self.state.uploads[upload][number] = body
        self._send(200, {"etag": _etag(body)}, b"")

    def _complete(self, upload: str) -> None:
        parts = self.state.uploads.pop(upload)
        content = b"".join(parts[number] for number in sorted(parts))
        status, _, answer = self._passed_on(f"{urlsplit(self.path).path}?X-Goog-Algorithm=any", content, "PUT")
        result = f"<CompleteMultipartUploadResult><ETag>{escape(_etag(content))}</ETag></CompleteMultipartUploadResult>"
        self._send(status, {"etag": _etag(content)}, result.encode() if status == 200 else answer)

    def _put(self, body: bytes) -> None:
        status, headers, answer = self._passed_on(f"{self.path}?X-Goog-Algorithm=any", body)
        self._send(status, headers | {"etag": _etag(body)}, answer)

    def _passed_on(self, path: str, body: bytes, method: str = "") -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        asked = method or self.command
        answer = self.state.pool.request(asked, self.state.server + path, headers=headers, body=body)
        kept = {name.lower(): value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
        if asked == "HEAD" and "content-length" in answer.headers:
            kept["content-length"] = answer.headers["content-length"]
        return answer.status, kept, answer.data

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in ({"content-length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
