"""A Pump: its node in PD's etcd, its states, and its removal (dataplane-apis.md 10, 15.3)."""

import json
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kube.objects import Json
from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.etcd import Etcd
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram

PORT = 8250
OFFLINE = "offline"
_PREFIX = b"/tidb-binlog/v1/pumps/"
_PD = Setting("pd-urls", "pd-urls", "http://127.0.0.1:2379")
_ADDRESS = Setting("addr", "addr", f"0.0.0.0:{PORT}")
_ADVERTISED = Setting("advertise-addr", "advertise-addr")
_DATA_DIR = Setting("data-dir", "data-dir")
_NODE_ID = Setting("node-id", "node-id")


@dataclass(slots=True)
class PumpData:
    """A Pump's data on its disk: binlogs, which drainers may still need while its node is not offline."""

    cluster: PdCluster
    node: str


def pump_nodes(etcd: Etcd, now: float) -> dict[str, Json]:
    """The registered nodes, by id."""
    found = etcd.range(_PREFIX, _PREFIX[:-1] + b"0", now)
    return {node["nodeId"]: node for node in (json.loads(entry.value) for _, entry in found)}


class PumpProcess(ServerProcess):
    """A pump behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.pump_start)
        self._disk = launch.disk(_DATA_DIR.of(launch))
        self._ports = ports(launch, (_ADDRESS,))
        self._id = _NODE_ID.of(launch) or f"{launch.env.get('HOSTNAME', launch.pod)}:{PORT}"
        self._cluster: PdCluster | None = None
        self._state = "online"
        self._drained_at: float | None = None

    def step(self) -> float | None:
        """Step as a server; also go offline when all binlogs are read."""
        now = self._deps.clock.now()
        if self.exit is None and self._drained_at is not None and now >= self._drained_at and self._can_write():
            self._leave(OFFLINE)
        due = super().step()
        return due if due is None or self._drained_at is None else max(min(due, self._drained_at), now)

    def listens(self, port: int) -> bool:
        """Accept connections once it is registered."""
        return self._cluster is not None and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """Answer on its API; refusals are HTTP successes."""
        path = unquote(urlsplit(request.url).path)
        if (request.method, path) == ("GET", "/status") and self._cluster is not None:
            return _json({"StatusMap": pump_nodes(self._cluster.etcd, self._deps.clock.now())})
        if request.method != "PUT" or not path.startswith("/state/"):
            return Answer(not_found())
        node, _, action = path.removeprefix("/state/").rpartition("/")
        if node != self._id:
            return _refusal(f"invalide nodeID {node}, this pump's nodeID is {self._id}")
        if self._state != "online":
            return _refusal(f"this pump's state is {self._state}, apply {action} failed!")
        if action not in ("pause", "close"):
            return _refusal(f"invalide action {action}")
        self._apply(action)
        return _json({"message": f"apply action {action} success!", "code": 200})

    def _work(self, now: float) -> float:  # noqa: ARG002
        """Register, then renew the node periodically."""
        return self._write()

    def _finish(self, now: float) -> None:  # noqa: ARG002
        """Mark the node as paused until it runs again; a closing node is finished when it stops."""
        self._leave(OFFLINE if self._state == "closing" else "paused")

    def _apply(self, action: str) -> None:
        now = self._deps.clock.now()
        if action == "pause":
            self.stop()
            return
        self._state, self._drained_at = "closing", now + self._deps.timings.pump_drain
        self._due = now + self._write()

    def _can_write(self) -> bool:
        return self._cluster is not None and self._cluster.leader is not None

    def _write(self) -> float:
        """Write the node once PD is found; return the seconds until the next time."""
        timings = self._deps.timings
        self._cluster = self._cluster or find_pd(_PD.of(self._launch), self._launch, self._deps)
        if self._cluster is None or self._cluster.leader is None:
            return timings.dependency_retry
        if not isinstance(self._disk.data, PumpData):
            self._disk.data = PumpData(self._cluster, self._id)
        stamp = int(self._deps.clock.wall().timestamp() * 1000) << 18
        node = {
            "nodeId": self._id,
            "host": _ADVERTISED.of(self._launch) or f"{self._launch.address}:{PORT}",
            "state": self._state,
            "isAlive": True,
            "score": 0,
            "label": None,
            "maxCommitTS": stamp,
            "updateTS": stamp,
        }
        self._cluster.etcd.put(_PREFIX + self._id.encode(), json.dumps(node, separators=(",", ":")).encode())
        return timings.pump_heartbeat

    def _leave(self, state: str) -> None:
        self._state = state
        if self._can_write():
            self._write()
        self._end(Exit(0))


def _json(body: object) -> Answer:
    return Answer(Response(200, {"content-type": "application/json"}, json.dumps(body).encode()))


def _refusal(message: str) -> Answer:
    return _json({"message": message, "code": 500})


PUMP = ServerProgram(
    name="pump",
    file="pump",
    image="tidb-binlog",
    start=PumpProcess,
    tables=("security", "storage"),
    numbers=("heartbeat-interval",),
    certificates=("security.ssl-ca", "security.ssl-cert", "security.ssl-key"),
)
