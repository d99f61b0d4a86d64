"""A TiProxy: health, configuration by API, and a graceful end (dataplane-apis.md 9, 15.3).

Since v1.3.0 it is healthy only while it knows a healthy TiDB; it finds them in PD's etcd.
"""

import json
import re
import tomllib
import zlib
from dataclasses import replace
from urllib.parse import urlsplit

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, reachable_port
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.processes import Answer, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.tidb import STATUS_PORT

_SQL = Setting("", "proxy.addr", "0.0.0.0:6000")
_API = Setting("", "api.addr", "0.0.0.0:3080")
_PD = Setting("", "proxy.pd-addrs", "127.0.0.1:2379")
_CLUSTER_TLS = tuple(Setting("", f"security.cluster-tls.{file}") for file in ("ca", "cert", "key"))
_GRACE = Setting("", "proxy.graceful-wait-before-shutdown", "0")
_BAD_GATEWAY = 502

Tree = dict[str, object]


class TiproxyProcess(ServerProcess):
    """A tiproxy behind its start script. It starts with or without PD and TiDB."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.container_start)
        self._sql, self._api = (reachable_port(setting.of(launch)) for setting in (_SQL, _API))
        self._grace = float(_GRACE.of(launch)) * deps.timings.grace_second
        self._asking = replace(launch, tls=launch.client_tls(*(each.of(launch) for each in _CLUSTER_TLS)))
        """The origin of its requests to PD and TiDB."""
        self._config: Tree = tomllib.loads(configuration(launch))
        self._backends: list[str] = []
        """The TiDB servers (`host:port`) in PD's last answer."""

    def listens(self, port: int) -> bool:
        """Accept SQL and its API once it serves."""
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
        """SIGTERM: refuse new connections for a while, close old ones, end."""
        if self._stopping_at is None:
            self._stopping_at = self._deps.clock.now() + self._grace + self._deps.timings.graceful_stop

    def _work(self, now: float) -> None:
        """Serve from now on; no further work."""

    def _health(self) -> Response:
        canonical = json.dumps(self._config, sort_keys=True, default=str)
        body = {"config_checksum": zlib.crc32(canonical.encode())}
        serves = self._stopping_at is None and (not self._asks_for_backends or self._has_backend())
        return _json(200 if serves else _BAD_GATEWAY, body)

    @property
    def _asks_for_backends(self) -> bool:
        return [int(part) for part in re.findall(r"\d+", self._launch.version)[:2]] >= [1, 3]

    def _has_backend(self) -> bool:
        """True if a server of the topology answers; while PD does not answer, its last list counts."""
        cluster = find_pd(_PD.of(self._launch), self._asking, self._deps)
        if cluster is not None:
            found = cluster.etcd.range(b"/topology/tidb/", b"/topology/tidb0", self._deps.clock.now())
            self._backends = [key.decode().split("/")[3] for key, _ in found if key.endswith(b"/ttl")]
        origin = Origin.of(self._asking)
        hosts = (backend.rpartition(":")[0] for backend in self._backends)
        return any(self._deps.network.find(f"{host}:{STATUS_PORT}", origin) for host in hosts)

    def _configure(self, body: bytes) -> Response:
        """Merge a TOML document into the configuration."""
        try:
            change = tomllib.loads(body.decode())
            _check_labels(change.get("labels", {}))
        except ValueError as error:
            return text(500, json.dumps(str(error)))
        self._config = _merged(self._config, change)
        return _json(200, "")


def _check_labels(labels: object) -> None:
    """Raises ValueError unless the labels map names to texts."""
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
