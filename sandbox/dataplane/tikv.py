"""A tikv-server: bootstrap, register, heartbeat, metrics (dataplane-apis.md 5, 15.2)."""

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.grpc import STATUS
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.log_streams import flush, flush_now
from sandbox.dataplane.membership import StoreMembership
from sandbox.dataplane.pd.stores import Heartbeat, Store
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram

SERVER_PORT = 20160
STATUS_PORT = 20180
_FLUSH_NOW = "/logbackup.LogBackup/FlushNow"
_STATUS = Setting("status-addr", "server.status-addr", f"0.0.0.0:{STATUS_PORT}")
_PD = Setting("pd", "pd.endpoints", "127.0.0.1:2379")
_ADVERTISED = Setting("advertise-addr", "server.advertise-addr")
_DATA_DIR = Setting("data-dir", "storage.data-dir", "./")
_ADDRESSES = (Setting("addr", "server.addr", f"0.0.0.0:{SERVER_PORT}"), _STATUS)


_UNREADY = tuple(f"{major}." for major in range(9))
"""The versions without `/ready`."""


class TikvProcess(ServerProcess):
    """A tikv-server behind its start script."""

    rests = True

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.tikv_start)
        self._ports, self._status = ports(launch, _ADDRESSES), ports(launch, (_STATUS,))
        started = deps.clock.wall().timestamp()

        def store(store_id: int, beat: Heartbeat) -> Store:
            return Store(store_id, self.address, launch.version, started, beat)

        disk = launch.disk(_DATA_DIR.of(launch))
        self._member = StoreMembership(launch, deps, disk, _PD.of(launch), store, bootstraps=True)

    @property
    def address(self) -> str:
        """The advertised address of the store."""
        return _ADVERTISED.of(self._launch) or _ADDRESSES[0].of(self._launch)

    def listens(self, port: int) -> bool:
        """Accept both ports once it is registered."""
        return self._member.is_registered and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:
        """Answer `/metrics` and `/status` on the status port, and a flush of log backups on the other."""
        store, path = self._member.store, request.url.partition("?")[0]
        if port not in self._status and path.endswith(_FLUSH_NOW) and self._member.cluster and store:
            return Answer(Response(200, {STATUS: "0"}, self._flush_now()), self._deps.timings.tikv_log_flush)
        if port in self._status and path.endswith("/ready") and not self._launch.version.startswith(_UNREADY):
            return Answer(Response(200 if self._member.is_registered else 500, {}, b""))
        if port in self._status and path.endswith("/status"):
            return Answer(Response(200, {}, b""))
        if port not in self._status or store is None or not path.endswith("/metrics"):
            return Answer(not_found())
        lines = (
            "# HELP tikv_raftstore_region_count Number of regions collected in region_collector",
            "# TYPE tikv_raftstore_region_count gauge",
            f'tikv_raftstore_region_count{{type="leader"}} {store.leaders}',
            f'tikv_raftstore_region_count{{type="region"}} {store.peers}',
        )
        headers = {"content-type": "text/plain; version=0.0.4"}
        return Answer(Response(200, headers, "\n".join((*lines, "")).encode()))

    def _flush_now(self) -> bytes:
        """Save what this TiKV holds of log backups; the answer of gRPC."""
        cluster, store = self._member.cluster, self._member.store
        assert cluster is not None
        assert store is not None
        return flush_now(cluster, store.id, self._deps.clock.now())

    def _work(self, now: float) -> float:
        """Register, then send heartbeats and write pending log backups."""
        pause = self._member.keep(now)
        if self._member.refusal is not None:
            self._end(self._member.refusal)
        elif self._member.cluster is not None:
            flush(self._member.cluster, now)
        return pause

    def _end(self, how: Exit) -> None:
        self._member.died()
        super()._end(how)


TIKV = ServerProgram(
    name="tikv",
    start=TikvProcess,
    tables=("log", "storage", "raftstore", "server", "coprocessor", "rocksdb", "raftdb", "security", "readpool", "gc"),
    numbers=("server.grpc-concurrency", "raftstore.store-pool-size", "storage.scheduler-worker-pool-size"),
    certificates=("security.ca-path", "security.cert-path", "security.key-path"),
    # of its status port: a real one demands certificates on the other, which only flushes of log backups dial here
    demands=False,
    allowed_names="security.cert-allowed-cn",
)
