"""TiFlash with its proxy: a store of learners, and how far it has started (dataplane-apis.md 7, 15.2)."""

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, ports
from sandbox.dataplane.membership import StoreMembership
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.stores import Heartbeat, Store
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found, text
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


class TiflashProcess:
    """A TiFlash behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        self._deps, timings = deps, deps.timings
        proxy = configuration(launch, _PROXY_CONFIG.of(launch))
        self._ports = ports(launch, (_SERVICE, _PROXY))
        self._status_ports = ports(launch, (_STATUS,), proxy)
        self._due = deps.clock.now() + timings.tikv_start + launch.slowness
        self._running_at: float | None = None
        self._stopping_at: float | None = None
        self._launch = launch
        address = _ENGINE.of(launch, proxy) or _SERVICE.of(launch)
        status_address = _ADVERTISED_STATUS.of(launch, proxy) or _STATUS.of(launch, proxy)
        started = deps.clock.wall().timestamp()

        def store(store_id: int, beat: Heartbeat) -> Store:
            labels = {"engine": "tiflash"}
            return Store(store_id, address, launch.version, started, beat, labels=labels, status_address=status_address)

        directory = _first(_DIRECTORIES.of(launch) or _PATH.of(launch))
        self._member = StoreMembership(launch, deps, launch.disk(directory), _PD.of(launch), store)
        self.exit: Exit | None = None

    def step(self) -> float | None:
        """Wait for TiKV, register, then report every heartbeat; return the next due time."""
        now = self._deps.clock.now()
        if self.exit is not None:
            return None
        if self._stopping_at is not None and now >= self._stopping_at:
            self._end(Exit(0))
            return None
        if now >= self._due:
            self._due = now + self._keep(now)
            if self._member.refusal is not None:
                self._end(self._member.refusal)
                return None
        due = [self._due, self._stopping_at, self._running_at if self.status == "Ready" else None]
        return min(time for time in due if time is not None)

    @property
    def status(self) -> str:
        """How far it has started."""
        if self._stopping_at is not None:
            return "Stopping"
        if self._running_at is None:
            return "Idle"
        return "Running" if self._deps.clock.now() >= self._running_at else "Ready"

    def question(self) -> Request | None:
        """It talks to PD in PD's own protocol, which is not HTTP."""
        return None

    def answered(self, response: Response | None) -> None:
        """Nothing was asked."""

    def listens(self, port: int) -> bool:
        """The proxy's status port from the beginning, the others once it is registered."""
        return port in self._status_ports or (self._member.is_registered and port in self._ports)

    def handle(self, port: int, request: Request) -> Answer:
        """`/tiflash/store-status` on the status port."""
        if port not in self._status_ports or not request.url.partition("?")[0].endswith("/tiflash/store-status"):
            return Answer(not_found())
        return Answer(text(200, self.status))

    def stop(self) -> None:
        """SIGTERM."""
        self._stopping_at = self._stopping_at or self._deps.clock.now() + self._deps.timings.graceful_stop

    def kill(self, code: int = 137) -> None:
        """End at once."""
        self._end(Exit(code))

    def _keep(self, now: float) -> float:
        cluster = None if self._member.is_registered else find_pd(_PD.of(self._launch), self._launch, self._deps)
        if cluster is not None and not cluster.stores.bootstrapped:
            # it does not bootstrap a cluster: that is TiKV's
            return self._deps.timings.dependency_retry
        pause = self._member.keep(now)
        if self._member.is_registered and self._running_at is None:
            self._running_at = now + self._deps.timings.tiflash_start
        return pause

    def _end(self, how: Exit) -> None:
        self._member.died()
        self.exit = how


def _first(directories: str) -> str:
    """The first of several directories: a list of the configuration, or a text with commas."""
    return directories.strip("[]").split(",")[0].strip().strip("'\"")


TIFLASH = ServerProgram(
    name="tiflash",
    file="tiflash",
    start=TiflashProcess,
    further_files=(_PROXY_CONFIG,),
    tables=("flash", "flash.flash_cluster", "flash.proxy", "logger", "raft", "security", "status", "storage", "server"),
    numbers=("flash.flash_cluster.master_ttl", "tcp_port", "http_port", "status.metrics_port", "logger.count"),
    certificates=("security.ca_path", "security.cert_path", "security.key_path"),
    # of the proxy's status port: nobody in the sandbox dials the others
    demands=False,
    allowed_names="security.cert_allowed_cn",
)
