"""One PD member: start, discovery, join, serve (dataplane-apis.md 15.1, objects.md 7.4)."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from ports.transport import Request, Response
from sandbox.dataplane.addresses import goes_by_host, peer_host, speaks_tls, waits_for_dns
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, ports
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import JoinRefused, Member, PdCluster
from sandbox.dataplane.pd.config import Config
from sandbox.dataplane.processes import Answer, Disk, Exit, Launch

DATA = "/var/lib/pd"
CLIENT_PORT = 2379
PEER_PORT = 2380
_CONFIG = "/etc/pd/pd.toml"
_URLS = (
    Setting("client-urls", "client-urls", f"http://0.0.0.0:{CLIENT_PORT}"),
    Setting("peer-urls", "peer-urls", f"http://0.0.0.0:{PEER_PORT}"),
)
_DISCOVERY_TIMEOUT = 3.0


Api = Callable[["PdProcess", Request, Dependencies], Answer]
"""Answers a request to a serving member."""


class Phase(Enum):
    """Where a starting member is."""

    STARTING = "starting"
    ASKING = "asking discovery"
    ADDED = "a member whose join file is yet to be written"
    JOINING = "joining"
    SERVING = "serving"


@dataclass(slots=True)
class PdData:
    """What a member keeps on its disk."""

    cluster: PdCluster
    member: int


@dataclass(frozen=True, slots=True)
class Identity:
    """A member's name and addresses, as its start script makes them."""

    name: str
    host: str
    scheme: str

    @property
    def peer_url(self) -> str:
        """Where other members reach it."""
        return f"{self.scheme}://{self.host}:{PEER_PORT}"

    @property
    def client_url(self) -> str:
        """Where clients reach it."""
        return f"{self.scheme}://{self.host}:{CLIENT_PORT}"


def identity(launch: Launch) -> Identity:
    """The identity a PD pod starts with (objects.md 7.4)."""
    host = peer_host(launch, "PEER_SERVICE_NAME")
    return Identity(host if goes_by_host(launch) else launch.pod, host, "https" if speaks_tls(launch) else "http")


class PdProcess:
    """A pd-server behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies, api: Api) -> None:
        """`api` answers the HTTP requests of a serving member."""
        self._launch = launch
        self._deps = deps
        self._api = api
        self._identity = identity(launch)
        self._disk = launch.disks.get(DATA) or Disk("")
        self._phase = Phase.STARTING
        self._ports = ports(launch, "pd", _URLS)
        self._due = deps.clock.now() + deps.timings.pd_start + launch.slowness
        self._joins: PdData | None = None
        """What the join file is going to say."""
        self._known_by = self._due + deps.timings.dns_timeout
        self._stopping_at: float | None = None
        self.served_at: float | None = None
        self.exit: Exit | None = None

    @property
    def name(self) -> str:
        """The member's name."""
        return self._identity.name

    @property
    def launch(self) -> Launch:
        """What the process was started with."""
        return self._launch

    @property
    def origin(self) -> Origin:
        """Who it is when it asks others."""
        return Origin(self._launch.namespace, self._launch.pod)

    @property
    def cluster(self) -> PdCluster | None:
        """The cluster it is a member of, once it has joined one."""
        data = self._disk.data
        return data.cluster if isinstance(data, PdData) else None

    @property
    def member(self) -> Member | None:
        """Its membership, or None before it joined and after it was removed."""
        data = self._disk.data
        return data.cluster.members.get(data.member) if isinstance(data, PdData) else None

    def votes(self) -> bool:
        """Whether it serves and other members can talk to it."""
        return self._can_be_reached(PEER_PORT)

    def answers(self, asker: Origin) -> bool:
        """Whether it serves and a client can talk to it, which may be otherwise."""
        return self._can_be_reached(CLIENT_PORT, asker)

    def _can_be_reached(self, port: int, asker: Origin | None = None) -> bool:
        if self._phase is not Phase.SERVING or self.exit is not None:
            return False
        return self._deps.network.reachable(self._launch, self, port, asker)

    def step(self) -> float | None:
        """Advance the start, notice a removal, tick the cluster; return the next due time."""
        now = self._deps.clock.now()
        if self.exit is not None:
            return None
        if self._stopping_at is not None and now >= self._stopping_at:
            self._end(Exit(0))
            return None
        if self._phase in (Phase.STARTING, Phase.ADDED, Phase.JOINING) and now >= self._due:
            self._advance()
        due = self._serve() if self._phase is Phase.SERVING else self._start_due(now)
        if self._stopping_at is None or self.exit is not None:
            return due
        return self._stopping_at if due is None else min(due, self._stopping_at)

    def question(self) -> Request | None:
        """Ask discovery how to start, when it is time to."""
        if self.exit is not None or self._phase is not Phase.ASKING or self._deps.clock.now() < self._due:
            return None
        launch = self._launch
        cluster = launch.env.get("PEER_SERVICE_NAME", "").removesuffix("-pd-peer")
        own = f"{self._identity.host}:{PEER_PORT}\n".encode()
        path = f"/new/{base64.b64encode(own).decode()}"
        url = f"http://{cluster}-discovery.{launch.namespace}.svc:10261{path}"
        return Request("GET", url, {"user-agent": "Wget"}, timeout=_DISCOVERY_TIMEOUT)

    def answered(self, response: Response | None) -> None:
        """Start as discovery says, or ask again after a while."""
        if self.exit is not None or self._phase is not Phase.ASKING:
            return
        arguments = response.body.decode().strip() if response is not None and response.status == 200 else ""
        retry = self._deps.timings.discovery_retry
        self._due = self._deps.clock.now() + self._deps.randomness.uniform(retry / 10, retry)
        if arguments.startswith("--initial-cluster="):
            self._bootstrap(arguments.removeprefix("--initial-cluster="))
        elif arguments.startswith("--join="):
            self._join(arguments.removeprefix("--join=").split(","))

    def listens(self, port: int) -> bool:
        """Clients and peers, once it serves."""
        return self._phase is Phase.SERVING and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """PD's HTTP API."""
        return self._api(self, request, self._deps)

    def stop(self) -> None:
        """SIGTERM: hand over and end."""
        if self._stopping_at is not None:
            return
        self._stopping_at = self._deps.clock.now() + self._deps.timings.graceful_stop
        cluster, member = self.cluster, self.member
        if cluster is not None and member is not None and cluster.leader is member:
            cluster.transfer(None)

    def kill(self, code: int = 137) -> None:
        """End at once."""
        self._end(Exit(code))

    def _start_due(self, now: float) -> float | None:
        """The next due time of a start; None while the answer to a question is awaited."""
        return None if self._phase is Phase.ASKING and now >= self._due else self._due

    def _advance(self) -> None:
        """The start script has run, the join file is to be written, or the join is through."""
        if self._phase is Phase.STARTING and not self._is_known():
            self._look_again()
            return
        if self._phase is Phase.ADDED and self._joins is not None:
            self._write_join_file(self._joins)
            return
        data = self._disk.data
        if not isinstance(data, PdData):
            self._phase = Phase.ASKING
            return
        if data.member in data.cluster.removed:
            self._end(Exit(1, "the member has been permanently removed from the cluster"))
            return
        member = data.cluster.members[data.member]
        member.name, member.client_url = self._identity.name, self._identity.client_url
        member.version, member.voter = self._launch.version, self
        self._phase = Phase.SERVING
        self.served_at = self._deps.clock.now()

    def _is_known(self) -> bool:
        """Whether DNS knows the pod by the name that it advertises, or the start script does not care."""
        network = self._deps.network
        return not waits_for_dns(self._launch) or network.resolves(self._identity.host, PEER_PORT, self.origin)

    def _look_again(self) -> None:
        now = self._deps.clock.now()
        if now >= self._known_by:
            self._end(Exit(1, f"{self._identity.host} did not resolve within {self._deps.timings.dns_timeout} s"))
        self._due = now + self._deps.timings.dependency_retry

    def _serve(self) -> float | None:
        cluster, member = self.cluster, self.member
        if cluster is None or member is None:
            self._end(Exit(1, "the member has been permanently removed from the cluster"))
            return None
        return cluster.tick()

    def _bootstrap(self, initial_cluster: str) -> None:
        if initial_cluster.count("=") != 1:
            self._end(Exit(1, f"the sandbox bootstraps single members only, not {initial_cluster!r}"))
            return
        deps = self._deps
        try:
            config = Config(self._launch.files.get(_CONFIG, ""))
        except ValueError as error:
            self._end(Exit(1, f"parse {_CONFIG}: {error}"))
            return
        cluster = PdCluster(deps.clock, deps.randomness, deps.timings, config)
        own = self._identity
        member = cluster.add(own.name, own.peer_url, own.client_url, self._launch.version)
        self._settle(PdData(cluster, member.id))

    def _join(self, urls: list[str]) -> None:
        for url in urls:
            found = self._deps.network.find(url, self.origin)
            peer = found.process if found is not None else None
            if not isinstance(peer, PdProcess) or peer.cluster is None or peer.cluster.leader is None:
                continue
            try:
                member = peer.cluster.join(self._identity.name, self._identity.peer_url)
            except JoinRefused as refused:
                self._end(Exit(1, f"join meet error: {refused}"))
                return
            self._joins, self._phase = PdData(peer.cluster, member.id), Phase.ADDED
            self._due = self._deps.clock.now() + self._deps.timings.pd_join_file
            return
        # nobody leads: joining blocks until somebody does, which here is to ask discovery again

    def _write_join_file(self, data: PdData) -> None:
        launch = self._launch
        if any(fnmatchcase(f"{launch.namespace}/{launch.pod}", glob) for glob in self._deps.interrupted_joins):
            self._end(Exit(1, "interrupted before the join file was written"))
            return
        self._settle(data)

    def _settle(self, data: PdData) -> None:
        self._disk.data = data
        self._phase = Phase.JOINING
        self._due = self._deps.clock.now() + self._deps.timings.pd_join

    def _end(self, how: Exit) -> None:
        member = self.member
        if member is not None and member.voter is self:
            member.voter = None
        self.exit = how
