"""TiCI's servers, `tici-server meta` and `tici-server worker` (TICI-17, TICI-19).

They need PD. The meta servers also need TiDB, where they log in as root without a password, and keep a catalogue. Each
has a gRPC port, on which nothing is spoken here, and a status port with metrics.
"""

import tomllib
from dataclasses import replace
from urllib.parse import urlsplit

from ports.transport import Request
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.tidb import TidbProcess

_PD = Setting("pd-addr", "server.pd-addr")
_PORTS = (Setting("port"), Setting("status-port"))
_REQUIRED = ("config", "host", "advertise-host")
_S3 = {"endpoint": str, "region": str, "access-key": str, "secret-key": str, "use-path-style": bool, "bucket": str}


class TiciProcess(ServerProcess):
    """A server behind its start line."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.tici_start)
        self._serves = False
        if complaint := _complaint(launch):
            self._end(Exit(1, complaint))

    def listens(self, port: int) -> bool:
        """Accept connections once PD, and for a meta server TiDB, have answered."""
        return self._serves and str(port) in (setting.of(self._launch) for setting in _PORTS)

    def handle(self, port: int, request: Request) -> Answer:
        """Answer with metrics on the status port."""
        is_metrics = urlsplit(request.url).path == "/metrics"
        return Answer(text(200, "") if is_metrics and str(port) == _PORTS[1].of(self._launch) else not_found())

    def _work(self, now: float) -> float:  # noqa: ARG002
        """Look for PD and TiDB until both answer."""
        has_pd = find_pd(_PD.of(self._launch), self._launch, self._deps) is not None
        self._serves = self._serves or (has_pd and (self._launch.command[1] == "worker" or self._logs_in()))
        return self._deps.timings.dependency_retry

    def _logs_in(self) -> bool:
        """True if a TiDB of the list accepts the login."""
        for dsn in tomllib.loads(configuration(self._launch))["tidb-server"]["dsns"]:
            url = urlsplit(dsn)
            found = self._deps.network.find(f"{url.hostname}:{url.port}", Origin.of(self._launch))
            process = found.process if found is not None else None
            if isinstance(process, TidbProcess) and process.login(url.username or "", url.password or "") is None:
                return True
        return False


def _complaint(launch: Launch) -> str:
    """Its message before it exits with code 1; empty if it starts."""
    command = launch.command[1:2]
    if command not in (("meta",), ("worker",)):
        return f"unknown sub-command {' '.join(command)!r} for 'tici-server'"
    missing = [name for name in _REQUIRED if not Setting(name).of(launch)]
    if missing:
        return f"missing argument --{missing[0]}"
    tree = tomllib.loads(configuration(launch))
    s3 = tree.get("s3") or {}
    wrong = [key for key, kind in _S3.items() if not isinstance(s3.get(key), kind)]
    if wrong or not s3["endpoint"] or not s3["bucket"]:
        return f"invalid configuration: s3.{(wrong or ['endpoint'])[0]}"
    if command == ("meta",) and not (tree.get("tidb-server") or {}).get("dsns"):
        return "invalid configuration: tidb-server.dsns"
    return ""


TICI_META = ServerProgram(
    name="tici-meta",
    file="tici-server",
    image="tici",
    start=TiciProcess,
    tables=("tidb-server", "server", "s3", "shard"),
)
TICI_WORKER = replace(TICI_META, name="tici-worker")
