"""A TiProxy: health, its configuration by API, and an end in good order (dataplane-apis.md 9, 15.3)."""

import json
import tomllib
import zlib
from urllib.parse import urlsplit

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, reachable_port
from sandbox.dataplane.processes import Answer, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram

_SQL = Setting("", "proxy.addr", "0.0.0.0:6000")
_API = Setting("", "api.addr", "0.0.0.0:3080")
_GRACE = Setting("", "proxy.graceful-wait-before-shutdown", "0")
_BAD_GATEWAY = 502

Tree = dict[str, object]


class TiproxyProcess(ServerProcess):
    """A tiproxy behind its start script. It serves whether or not PD and TiDB are there."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.container_start)
        self._sql, self._api = (reachable_port(setting.of(launch)) for setting in (_SQL, _API))
        self._grace = float(_GRACE.of(launch)) * deps.timings.grace_second
        self._config: Tree = tomllib.loads(configuration(launch))

    def listens(self, port: int) -> bool:
        """SQL and its API, once it serves."""
        return self._deps.clock.now() >= self._starts_at and port in (self._sql, self._api)

    def handle(self, port: int, request: Request) -> Answer:
        """The API."""
        path = urlsplit(request.url).path
        if port != self._api:
            return Answer(not_found())
        match request.method, path.rstrip("/"):
            case "GET", "/api/debug/health":
                return Answer(self._health())
            case "GET", "/api/admin/config":
                return Answer(_json(200, self._config))
            case "PUT", "/api/admin/config":
                return Answer(self._configure(request.body or b""))
        return Answer(not_found())

    def stop(self) -> None:
        """SIGTERM: refuse new connections for a while, let go of the old ones, end."""
        if self._stopping_at is None:
            self._stopping_at = self._deps.clock.now() + self._grace + self._deps.timings.graceful_stop

    def _work(self, now: float) -> None:
        """It serves from now on, and does nothing unasked."""

    def _health(self) -> Response:
        canonical = json.dumps(self._config, sort_keys=True, default=str)
        body = {"config_checksum": zlib.crc32(canonical.encode())}
        return _json(200 if self._stopping_at is None else _BAD_GATEWAY, body)

    def _configure(self, body: bytes) -> Response:
        """Take over what a TOML document says; the rest stays."""
        try:
            change = tomllib.loads(body.decode())
            _check_labels(change.get("labels", {}))
        except ValueError as error:
            return text(500, str(error))
        self._config = _merged(self._config, change)
        return _json(200, "")


def _check_labels(labels: object) -> None:
    """Raises ValueError for what are no labels: texts by name."""
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValueError(f"toml: incompatible types: labels are strings by name, not {labels!r}")


def _merged(base: Tree, change: Tree) -> Tree:
    merged = dict(base)
    for key, value in change.items():
        there = merged.get(key)
        merged[key] = _merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return merged


def _json(status: int, body: object) -> Response:
    return Response(status, {"content-type": "application/json; charset=utf-8"}, json.dumps(body).encode())


TIPROXY = ServerProgram(
    name="tiproxy",
    start=TiproxyProcess,
    file="tiproxy",
    tables=("api", "labels", "log", "proxy", "security", "security.cluster-tls", "security.server-http-tls"),
    numbers=("proxy.conn-buffer-size", "proxy.graceful-wait-before-shutdown", "proxy.max-connections"),
    certificates=tuple(
        f"security.{name}.{file}"
        for name in ("cluster-tls", "server-tls", "sql-tls", "server-http-tls")
        for file in ("ca", "cert", "key")
    ),
    identity=tuple(Setting("", f"security.server-http-tls.{file}") for file in ("ca", "cert", "key")),
    demands=False,
    help="Usage:\n  tiproxy [flags]\n\nFlags:\n      --advertise-addr string\n      --config string\n",
)
