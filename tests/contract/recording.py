"""A reverse proxy that records kubectl's requests and the answers, without values. It keeps of an answer: status,
content type, kind, Status.reason and the names of the fields, three levels deep."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
import urllib3
import yaml

from kube.objects import Json
from ports.http_server import read_body
from tests.contract.differences import is_known, is_left_out, tells_what_is_served
from tests.contract.worlds import eventually

_DEPTH = 3
_POLL = 0.05
_HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")
_NOT_FORWARDED = (*_HOP_BY_HOP, "host", "accept", "accept-encoding", "if-none-match", "if-modified-since")
_NOT_RETURNED = (*_HOP_BY_HOP, "etag", "last-modified", "cache-control", "expires")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VOLATILE = ("resourceVersion", "timeoutSeconds", "continue", "timeout")


@dataclass(frozen=True, slots=True, order=True)
class Exchange:
    """One answer, or one event of a watch (then `event` is its type)."""

    method: str
    path: str
    status: int
    content_type: str
    kind: str = ""
    reason: str = ""
    event: str = ""
    keys: frozenset[str] = frozenset()

    def without_keys(self) -> "Exchange":
        """The exchange without the fields of its answer."""
        return replace(self, keys=frozenset())

    def __str__(self) -> str:
        """One line, without the keys."""
        words = (self.method, self.path, str(self.status), self.content_type, self.event, self.kind, self.reason)
        return " ".join(word for word in words if word)


class Recorder:
    """Forwards from a loopback port to an API server; `take` returns the records since the last call."""

    def __init__(self, kubeconfig: Path) -> None:
        self._original = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = self._original["clusters"][0]["cluster"], self._original["users"][0]["user"]
        self._server = _Server(cluster["server"], cluster.get("certificate-authority"), user["token"])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), name="recorder")

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, target: Path) -> Path:
        """Write the kubeconfig with the proxy in place of the server."""
        tree = msgspec.json.decode(msgspec.json.encode(self._original))
        tree["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._server.server_address[1]}"}
        target.write_text(yaml.safe_dump(tree), encoding="utf-8")
        return target

    def wait_for_watch(self) -> None:
        """Until a watch is open."""
        eventually(lambda: any("watch=" in each.path for each in list(self._server.recorded)))

    def wait_for_event(self, kind: str) -> None:
        """Until a watch has sent such an event."""
        eventually(lambda: any(each.event == kind for each in list(self._server.recorded)))

    def take(self) -> set[Exchange]:
        """The records."""
        taken, self._server.recorded = set(self._server.recorded), []
        return taken


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str, authority: str | None, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = upstream
        # kubectl sends no credentials over plain HTTP
        self.authorization = {"authorization": f"Bearer {token}"}
        self.pool = urllib3.PoolManager(ca_certs=authority, retries=False, maxsize=20)
        self.recorded: list[Exchange] = []

    def server_close(self) -> None:
        super().server_close()
        self.pool.clear()


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        # what a watch shows after its step has ended belongs to no step
        self._round = self.server.recorded
        length = int(self.headers.get("content-length") or 0)
        answer = self.server.pool.request(
            self.command,
            self.server.upstream + self.path,
            body=read_body(self.rfile, length) or None,
            headers=self._headers(),
            preload_content=False,
            timeout=60.0,
        )
        try:
            self._pass_on(answer)
        except (OSError, urllib3.exceptions.HTTPError):
            self.close_connection = True
        finally:
            answer.close()

    def _headers(self) -> dict[str, str]:
        """Kubectl's request headers, but always for a fresh answer, and in JSON."""
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_FORWARDED}
        accepted = [each for each in self.headers.get("accept", "").split(",") if "protobuf" not in each]
        return kept | self.server.authorization | {"accept": ",".join(accepted) or "*/*"}

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _forward  # noqa: N815

    def _pass_on(self, answer: urllib3.BaseHTTPResponse) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _NOT_RETURNED:
                self.send_header(name, value)
        watch = "watch=" in self.path and answer.status == 200
        if watch:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._record(answer, None)
            for line in _lines(answer):
                self._record(answer, line)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
            return
        body = answer.read()
        self._record(answer, body)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _record(self, answer: urllib3.BaseHTTPResponse, body: bytes | None) -> None:
        path, content_type = _normal(self.path), answer.headers.get("content-type", "")
        exchange = _exchange(self.command, path, answer.status, content_type, body)
        if self._round is self.server.recorded and not is_left_out(path, exchange.event):
            self._round.append(exchange)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The recording is the log."""


def _exchange(method: str, path: str, status: int, content_type: str, body: bytes | None) -> Exchange:
    if not body or "json" not in content_type:
        return Exchange(method, path, status, content_type)
    tree = msgspec.json.decode(body)
    event = ""
    if tree.keys() == {"type", "object"}:
        event, tree = tree["type"], tree["object"]
    kind = tree.get("kind", "")
    reason = tree.get("reason", "") if kind == "Status" else ""
    keys = frozenset() if tells_what_is_served(path) else frozenset(_keys(kind, tree))
    return Exchange(method, path, status, content_type, kind, reason, event, keys)


def _keys(kind: str, tree: Json) -> Iterator[str]:
    """The names of an answer's fields that the contract covers. Of a Table the names of its columns count too."""
    if kind == "Table":
        columns = [f"columnDefinitions.{column['name']}" for column in tree.get("columnDefinitions") or ()]
        yield from columns
    yield from (path for path in _paths(tree, "", _DEPTH) if not is_known(path))


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{path}[]", depth)
        return
    if value is None:
        # Go writes null where it has nothing
        return
    if path:
        yield path
    if not isinstance(value, dict) or depth == 0:
        return
    for name, inner in value.items():
        # items of lists and objects of rows are separate objects
        left = _DEPTH if name in ("items", "object") else depth - 1
        yield from _paths(inner, f"{path}.{name}".lstrip("."), left)


def _normal(url: str) -> str:
    """The path and query without what differs from run to run."""
    parts = urlsplit(url)
    query = [(name, _normal_value(name, value)) for name, value in parse_qsl(parts.query) if name != "hash"]
    text = parts.path + ("?" + urlencode(sorted(query), safe="*=,") if query else "")
    return _UID.sub("<uid>", text)


def _normal_value(name: str, value: str) -> str:
    if name in _VOLATILE:
        return "*"
    return ",".join(sorted(value.split(","))) if name == "fieldSelector" else value


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    pending = b""
    while chunk := answer.read1():
        pending += chunk
        *lines, pending = pending.split(b"\n")
        yield from (line + b"\n" for line in lines if line)
