"""A tikv-server: bootstrap, register, heartbeat, metrics (dataplane-apis.md 5, 15.2)."""

from dataclasses import dataclass

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.stores import Heartbeat, NodeState, Store, StoreRefused
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found
from sandbox.dataplane.server_program import ServerProgram

SERVER_PORT = 20160
STATUS_PORT = 20180
_STATUS = Setting("status-addr", "server.status-addr", f"0.0.0.0:{STATUS_PORT}")
_PD = Setting("pd", "pd.endpoints", "127.0.0.1:2379")
_ADVERTISED = Setting("advertise-addr", "server.advertise-addr")
_DATA_DIR = Setting("data-dir", "storage.data-dir", "./")
_ADDRESSES = (Setting("addr", "server.addr", f"0.0.0.0:{SERVER_PORT}"), _STATUS)


@dataclass(slots=True)
class TikvData:
    """What a store keeps on its disk."""

    cluster_id: int
    store: int


class TikvProcess:
    """A tikv-server behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        self._launch = launch
        self._deps = deps
        self._disk = launch.disk(_DATA_DIR.of(launch))
        self._ports, self._status = ports(launch, _ADDRESSES), ports(launch, (_STATUS,))
        self._due = deps.clock.now() + deps.timings.tikv_start + launch.slowness
        self._started = deps.clock.wall().timestamp()
        self._cluster: PdCluster | None = None
        self._stopping_at: float | None = None
        self.exit: Exit | None = None

    @property
    def address(self) -> str:
        """Where the store says it is."""
        return _ADVERTISED.of(self._launch) or _ADDRESSES[0].of(self._launch)

    def step(self) -> float | None:
        """Register, then report every heartbeat; return the next due time."""
        now = self._deps.clock.now()
        if self.exit is not None:
            return None
        if self._stopping_at is not None and now >= self._stopping_at:
            self._end(Exit(0))
            return None
        if now >= self._due:
            self._due = now + (self._report(now) if self._cluster is not None else self._register(now))
        return self._due if self._stopping_at is None else min(self._due, self._stopping_at)

    def question(self) -> Request | None:
        """It talks to PD in PD's own protocol, which is not HTTP."""
        return None

    def answered(self, response: Response | None) -> None:
        """Nothing was asked."""

    def listens(self, port: int) -> bool:
        """Both ports, once it is registered."""
        return self._cluster is not None and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:
        """`/metrics` on the status port."""
        store = self._store()
        if port not in self._status or store is None or not request.url.partition("?")[0].endswith("/metrics"):
            return Answer(not_found())
        lines = (
            "# HELP tikv_raftstore_region_count Number of regions collected in region_collector",
            "# TYPE tikv_raftstore_region_count gauge",
            f'tikv_raftstore_region_count{{type="leader"}} {store.leaders}',
            f'tikv_raftstore_region_count{{type="region"}} {store.peers}',
        )
        headers = {"content-type": "text/plain; version=0.0.4"}
        return Answer(Response(200, headers, "\n".join((*lines, "")).encode()))

    def stop(self) -> None:
        """SIGTERM."""
        self._stopping_at = self._stopping_at or self._deps.clock.now() + self._deps.timings.graceful_stop

    def kill(self, code: int = 137) -> None:
        """End at once."""
        self._end(Exit(code))

    def _register(self, now: float) -> float:
        """Find PD and put the store; return the seconds until the next try or the first heartbeat."""
        timings = self._deps.timings
        cluster = find_pd(_PD.of(self._launch), self._launch, self._deps)
        if cluster is None:
            return timings.dependency_retry
        data = self._disk.data
        if isinstance(data, TikvData) and data.cluster_id != cluster.id:
            self._end(Exit(1, f"cluster ID mismatch, local {data.cluster_id} != remote {cluster.id}"))
            return timings.store_heartbeat
        if not isinstance(data, TikvData):
            data = TikvData(cluster.id, cluster.stores.allocate())
            self._disk.data = data
        store = Store(data.store, self.address, self._launch.version, self._started, self._beat(now))
        try:
            cluster.stores.register(store, now)
        except StoreRefused as refused:
            self._end(Exit(1, refused.message))
            return timings.store_heartbeat
        self._cluster = cluster
        return timings.store_heartbeat

    def _report(self, now: float) -> float:
        cluster = find_pd(_PD.of(self._launch), self._launch, self._deps)
        data = self._disk.data
        if cluster is not None and isinstance(data, TikvData) and cluster is self._cluster:
            store = self._store()
            if store is not None and store.node_state is not NodeState.REMOVED:
                cluster.stores.heartbeat(data.store, self._beat(now))
        return self._deps.timings.store_heartbeat

    def _beat(self, now: float) -> Heartbeat:
        return Heartbeat(now, self._deps.clock.wall().timestamp())

    def _store(self) -> Store | None:
        data = self._disk.data
        if self._cluster is None or not isinstance(data, TikvData):
            return None
        return next((store for store in self._cluster.stores.all() if store.id == data.store), None)

    def _end(self, how: Exit) -> None:
        data = self._disk.data
        if self._cluster is not None and isinstance(data, TikvData):
            self._cluster.stores.died(data.store, self._deps.clock.now())
        self.exit = how


TIKV = ServerProgram(
    name="tikv",
    start=TikvProcess,
    tables=("log", "storage", "raftstore", "server", "coprocessor", "rocksdb", "raftdb", "security", "readpool", "gc"),
    numbers=("server.grpc-concurrency", "raftstore.store-pool-size", "storage.scheduler-worker-pool-size"),
    certificates=("security.ca-path", "security.cert-path", "security.key-path"),
    # of its status port: nobody in the sandbox dials the other one
    demands=False,
    allowed_names="security.cert-allowed-cn",
)
