"""A DM worker: it registers with the masters, and lives as long as its lease (dataplane-apis.md 15)."""

from urllib.parse import urlsplit

from ports.transport import Request
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.dm.book import Book
from sandbox.dataplane.dm.master import CERTIFICATES, find_masters
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import Answer, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram

_ADDRESS = Setting("worker-addr", "worker-addr", "127.0.0.1:8262")
_ADVERTISED = Setting("advertise-addr", "advertise-addr")
_JOIN = Setting("join", "join")
_NAME = Setting("name", "name")


class DMWorkerProcess(ServerProcess):
    """A `dm-worker`."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.dm_worker_start)
        self._ports = ports(launch, (_ADDRESS,))
        self._name = _NAME.of(launch) or launch.pod
        self._cluster: PdCluster | None = None
        self._lease = 0

    def listens(self, port: int) -> bool:
        """Accept connections on its one port, once it is registered."""
        return self._cluster is not None and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """Answer on its status page; the masters talk to it in another protocol."""
        return Answer(text(200, "ok\n") if urlsplit(request.url).path == "/status" else not_found())

    def _work(self, now: float) -> float:
        """Register, or renew the lease."""
        timings = self._deps.timings
        cluster = find_masters(_JOIN.of(self._launch), self._launch, self._deps)
        if cluster is None:
            return timings.dependency_retry
        self._cluster = cluster
        book = Book(cluster.etcd, now)
        if not cluster.etcd.keep_alive(self._lease, now):
            self._lease = cluster.etcd.grant(timings.dm_worker_lease, now)
            book.register(self._name, _ADVERTISED.of(self._launch), self._lease)
        book.schedule()
        return timings.dm_worker_tick

    def _finish(self, now: float) -> None:
        """Deregister; the lease of a killed worker expires instead."""
        if self._cluster is not None and self._cluster.leader is not None:
            book = Book(self._cluster.etcd, now)
            book.leave(self._name)
            book.schedule()
        super()._finish(now)


DM_WORKER = ServerProgram(
    name="dm-worker",
    file="dm-worker",
    image="dm",
    start=DMWorkerProcess,
    numbers=("keepalive-ttl", "relay-keepalive-ttl"),
    certificates=CERTIFICATES,
)
