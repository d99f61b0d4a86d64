"""A PD member: starts, joins, serves (dataplane-apis.md 15.1). Its arguments determine how it starts."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from ports.transport import Request
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, configuration, configuration_file, ports
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import JoinRefused, Member, PdCluster, at_least
from sandbox.dataplane.pd.config import Config
from sandbox.dataplane.processes import Answer, Exit, Launch, text
from sandbox.dataplane.server_process import ServerProcess

CLIENT_PORT = 2379
PEER_PORT = 2380
_CLIENT_URLS = Setting("client-urls", "client-urls", f"http://127.0.0.1:{CLIENT_PORT}")
_PEER_URLS = Setting("peer-urls", "peer-urls", f"http://127.0.0.1:{PEER_PORT}")
URLS = (_CLIENT_URLS, _PEER_URLS)
"""The listen URL settings."""
_NAME = Setting("name", "name")
_DATA_DIR = Setting("data-dir", "data-dir", "default.pd")
_ADVERTISED_CLIENT_URLS = Setting("advertise-client-urls", "advertise-client-urls")
_ADVERTISED_PEER_URLS = Setting("advertise-peer-urls", "advertise-peer-urls")
_JOIN = Setting("join", "join")
_INITIAL_CLUSTER = Setting("initial-cluster", "initial-cluster")

Api = Callable[["PdProcess", Request, Dependencies], Answer]
"""Answers a request to a serving member."""


class Phase(Enum):
    """The phase of a starting member."""

    STARTING = "starting"
    ADDED = "a member whose join file is yet to be written"
    JOINING = "joining"
    SERVING = "serving"
    HANGING = "on the data of a removed member: its etcd stops at once, and it still listens"


@dataclass(slots=True)
class PdData:
    """A member's data on its disk."""

    cluster: PdCluster
    member: int


@dataclass(frozen=True, slots=True)
class Identity:
    """A member's name, and the URLs by which other members and clients reach it."""

    name: str
    peer_url: str
    client_url: str


@dataclass(frozen=True, slots=True)
class Flags:
    """The settings of a member: data directory, listen URLs, identity."""

    data_dir: Setting
    listens: tuple[Setting, ...]
    identity: Callable[[Launch], Identity]


def identity(launch: Launch) -> Identity:
    """The identity in a PD's arguments."""
    peer = _ADVERTISED_PEER_URLS.of(launch) or _PEER_URLS.of(launch)
    client = _ADVERTISED_CLIENT_URLS.of(launch) or _CLIENT_URLS.of(launch)
    # it may advertise several equivalent URLs
    return Identity(_NAME.of(launch) or f"pd-{launch.pod}", peer.partition(",")[0], client.partition(",")[0])


_OF_PD = Flags(_DATA_DIR, URLS, identity)


class PdProcess(ServerProcess):
    """A pd-server, or a program that embeds its etcd."""

    rests = True

    def __init__(self, launch: Launch, deps: Dependencies, api: Api, flags: Flags = _OF_PD) -> None:
        """`api` answers the HTTP requests of a serving member."""
        super().__init__(launch, deps, deps.timings.pd_start)
        self._api = api
        self._identity = flags.identity(launch)
        self._disk = launch.disk(flags.data_dir.of(launch))
        self._phase = Phase.STARTING
        self._ports = ports(launch, flags.listens)
        self._joins: PdData | None = None
        """The future content of the join file."""
        self.speaks_tls = launch.tls is not None
        self.is_api_only = launch.command[1:3] == ("services", "api")
        self.served_at: float | None = None
        self._reached = False
        self._reached_as_of = -1
        """The value of `disturbances` when `_reached` was computed."""

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
        """The origin of its requests."""
        return Origin.of(self._launch)

    @property
    def cluster(self) -> PdCluster | None:
        """The cluster that it has joined, or None."""
        data = self._disk.data
        return data.cluster if isinstance(data, PdData) else None

    @property
    def member(self) -> Member | None:
        """Its membership; None before it joined and after it was removed."""
        data = self._disk.data
        return data.cluster.members.get(data.member) if isinstance(data, PdData) else None

    def is_up(self) -> bool:
        """True if it serves and other members can reach it."""
        return self._serves() and self._is_reached()

    def votes(self) -> bool:
        """True if it is up and accepts the others' certificates, and they accept its own."""
        return self.is_up() and self._is_trusted()

    def answers(self, asker: Origin) -> bool:
        """True if it serves and the client can reach it (it may serve while partitioned)."""
        return self._serves() and self._deps.network.reachable(self._launch, self, self._identity.client_url, asker)

    def _serves(self) -> bool:
        return self._phase is Phase.SERVING and self.exit is None

    def _is_reached(self) -> bool:
        """True if its peers reach it; cached, because members check it often."""
        network = self._deps.network
        if self._reached_as_of != network.disturbances:
            self._reached_as_of = network.disturbances
            self._reached = network.reachable(self._launch, self, self._identity.peer_url)
        return self._reached

    def _is_trusted(self) -> bool:
        """True if it and more than half of the running members, itself included, accept each other's certificates."""
        cluster = self.cluster
        if cluster is None or not cluster.needs_tls:
            return True
        found = [member.voter for member in cluster.members.values()]
        others = [
            pd_process
            for pd_process in found
            if isinstance(pd_process, PdProcess) and pd_process is not self and pd_process._serves()
        ]
        accepted = (pd_process for pd_process in others if self._accepts(pd_process) and pd_process._accepts(self))
        return at_least((1 + len(others)) // 2, accepted)

    def _accepts(self, other: "PdProcess") -> bool:
        # etcd dials the URL with which the member joined, whatever it advertises now
        member = other.member
        known = member.peer_url if member is not None else other._identity.peer_url
        return self._deps.network.trusts(self._launch, known, other._launch)

    def step(self) -> float | None:
        """Advance the start, notice a removal, tick the cluster; return the next due time."""
        now = self._deps.clock.now()
        if self.exit is not None:
            return None
        if self._stopping_at is not None and now >= self._stopping_at:
            self._end(Exit(0))
            return None
        if self._phase is not Phase.SERVING and self._due is not None and now >= self._due:
            self._advance()
        due = self._serve() if self._phase is Phase.SERVING else self._due
        return self._earliest(due, self._stopping_at)

    def rests_until(self) -> float:
        cluster = self.cluster
        if self._phase is not Phase.SERVING or self._stopping_at is not None or cluster is None:
            return super().rests_until()
        return cluster.quiet_until()

    def listens(self, port: int) -> bool:
        """Accept clients and peers once it serves."""
        return self._phase in (Phase.SERVING, Phase.HANGING) and port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """Answer on PD's HTTP API."""
        if self._phase is Phase.HANGING:
            return Answer(text(503, ""), delay=float("inf"))
        return self._api(self, request, self._deps)

    def stop(self) -> None:
        """SIGTERM: hand over and end."""
        if self._stopping_at is not None:
            return
        self._stopping_at = self._deps.clock.now() + self._deps.timings.graceful_stop
        self.woken = True
        cluster, member = self.cluster, self.member
        if cluster is not None and member is not None and cluster.leader is member:
            cluster.transfer(None)

    def _advance(self) -> None:
        """Advance: it has started, or the join file is due, or the join is complete."""
        if self._phase is Phase.ADDED and self._joins is not None:
            self._write_join_file(self._joins)
            return
        data = self._disk.data
        if not isinstance(data, PdData):
            self._begin()
            return
        if data.member in data.cluster.removed:
            self._phase, self._due = Phase.HANGING, None
            return
        member = data.cluster.members[data.member]
        member.name, member.client_url = self._identity.name, self._identity.client_url
        member.version, member.voter = self._launch.version, self
        self._phase = Phase.SERVING
        self.served_at = self._deps.clock.now()
        data.cluster.serving.append(self)
        data.cluster.changed()

    def _serve(self) -> float | None:
        cluster = self.cluster
        # the etcd of a removed member stops, but the process continues and forwards requests to the leader
        return cluster.tick() if cluster is not None and self.member is not None else None

    def _begin(self) -> None:
        """Without data it joins the given members, or begins a cluster if none are given."""
        if urls := _JOIN.of(self._launch):
            self._join(urls.split(","))
        else:
            own = f"{self._identity.name}={self._identity.peer_url}"
            self._bootstrap(_INITIAL_CLUSTER.of(self._launch) or own)

    def _bootstrap(self, initial_cluster: str) -> None:
        if initial_cluster.count("=") != 1:
            self._end(Exit(1, f"the sandbox bootstraps single members only, not {initial_cluster!r}"))
            return
        deps = self._deps
        try:
            config = Config(configuration(self._launch))
        except ValueError as error:
            self._end(Exit(1, f"parse {configuration_file(self._launch)}: {error}"))
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
        self._end(Exit(1, f"join meet error: {', '.join(urls)}: context deadline exceeded"))

    def _write_join_file(self, data: PdData) -> None:
        launch = self._launch
        if any(fnmatchcase(f"{launch.namespace}/{launch.pod}", glob) for glob in self._deps.interrupted_joins):
            self._end(Exit(1, "interrupted before the join file was written"))
            return
        members = data.cluster.members.values()
        self._disk.files["join"] = ",".join(f"{member.name or self.name}={member.peer_url}" for member in members)
        self._settle(data)

    def _settle(self, data: PdData) -> None:
        self._disk.data = data
        self._disk.files["member/wal/0.wal"] = ""
        self._phase = Phase.JOINING
        self._due = self._deps.clock.now() + self._deps.timings.pd_join

    def _end(self, how: Exit) -> None:
        member = self.member
        if member is not None and member.voter is self:
            member.voter = None
        super()._end(how)
        cluster = self.cluster
        if cluster is not None and self in cluster.serving:
            cluster.serving.remove(self)
            cluster.changed()
