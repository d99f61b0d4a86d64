"""TiFlash with its proxy: a store of learners, and its start-up state (dataplane-apis.md 7, 15.2)."""

from ports.transport import Request
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, ports
from sandbox.dataplane.membership import StoreMembership
from sandbox.dataplane.pd.stores import Heartbeat, Store
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found, text
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram

_STATUS = Setting("server.status-addr", "server.status-addr", "0.0.0.0:20292")
_SERVICE = Setting("flash.service_addr", "flash.service_addr", "0.0.0.0:3930")
_PROXY = Setting("flash.proxy.addr", "flash.proxy.addr", "0.0.0.0:20170")
_PROXY_CONFIG = Setting("flash.proxy.config", "flash.proxy.config")
_ENGINE = Setting("engine-addr", "server.engine-addr")
_ADVERTISED_STATUS = Setting("flash.proxy.advertise-status-addr", "server.advertise-status-addr")
_PD = Setting("raft.pd_addr", "raft.pd_addr", "127.0.0.1:2379")
_PATH = Setting("path", "path", "/var/lib/tiflash")
_DIRECTORIES = Setting("storage.main.dir", "storage.main.dir")


class TiflashProcess(ServerProcess):
    """A TiFlash behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        super().__init__(launch, deps, deps.timings.tikv_start)
        proxy = configuration(launch, _PROXY_CONFIG.of(launch))
        self._ports = ports(launch, (_SERVICE, _PROXY))
        self._status_ports = ports(launch, (_STATUS,), proxy)
        self._running_at: float | None = None
        address = _ENGINE.of(launch, proxy) or _SERVICE.of(launch)
        status_address = _ADVERTISED_STATUS.of(launch, proxy) or _STATUS.of(launch, proxy)
        started = deps.clock.wall().timestamp()

        def store(store_id: int, beat: Heartbeat) -> Store:
            labels = {"engine": "tiflash"}
            return Store(store_id, address, launch.version, started, beat, labels=labels, status_address=status_address)

        disk = launch.disk(_first(_DIRECTORIES.of(launch) or _PATH.of(launch)))
        # only TiKV bootstraps a cluster
        self._member = StoreMembership(launch, deps, disk, _PD.of(launch), store, bootstraps=False)

    def step(self) -> float | None:
        """Step as a server; also becomes Running some time after it has registered."""
        due = super().step()
        return due if self.exit is not None or self.status != "Ready" else self._earliest(due, self._running_at)

    @property
    def status(self) -> str:
        """Its start-up state."""
        if self._stopping_at is not None:
            return "Stopping"
        if self._running_at is None:
            return "Idle"
        return "Running" if self._deps.clock.now() >= self._running_at else "Ready"

    def listens(self, port: int) -> bool:
        """Accept the proxy's status port from the start, the others once it is registered."""
        return port in self._status_ports or (self._member.is_registered and port in self._ports)

    def handle(self, port: int, request: Request) -> Answer:
        """Answer `/tiflash/store-status` on the status port."""
        if port not in self._status_ports or not request.url.partition("?")[0].endswith("/tiflash/store-status"):
            return Answer(not_found())
        return Answer(text(200, self.status))

    def _work(self, now: float) -> float:
        """Wait for TiKV, register, then send heartbeats."""
        pause = self._member.keep(now)
        if self._member.refusal is not None:
            self._end(self._member.refusal)
        elif self._member.is_registered and self._running_at is None:
            self._running_at = now + self._deps.timings.tiflash_start
        return pause

    def _end(self, how: Exit) -> None:
        self._member.died()
        super()._end(how)


def _first(directories: str) -> str:
    """The first of several directories, in a list or comma-separated text."""
    return directories.strip("[]").split(",")[0].strip().strip("'\"")


TIFLASH = ServerProgram(
    name="tiflash",
    file="tiflash",
    start=TiflashProcess,
    further_files=(_PROXY_CONFIG,),
    tables=("flash", "flash.flash_cluster", "flash.proxy", "logger", "raft", "security", "status", "storage", "server"),
    numbers=("flash.flash_cluster.master_ttl", "tcp_port", "http_port", "status.metrics_port", "logger.count"),
    certificates=("security.ca_path", "security.cert_path", "security.key_path"),
    # about the proxy's status port: no client in the sandbox dials the others
    demands=False,
    allowed_names="security.cert_allowed_cn",
)
