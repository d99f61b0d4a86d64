"""The shared state of a PD cluster's members: membership, leadership, stores, keys (dataplane-apis.md 15.1).

Replication is not modelled. The shared state represents the log that a quorum agrees on, and only a leader with a
quorum reads or changes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.config import Config
from sandbox.dataplane.pd.etcd import Etcd
from sandbox.dataplane.pd.microservices import Registry
from sandbox.dataplane.pd.placement import Placement
from sandbox.dataplane.pd.stores import Stores
from sandbox.dataplane.processes import Disk
from sandbox.dataplane.tables import Tables
from sandbox.timings import Timings


class JoinRefused(Exception):
    """Raised if a member may not join now. The message is PD's."""


class RemovalRefused(Exception):
    """Raised if etcd keeps a member because the others would not be a majority. The message is etcd's."""


def at_least(count: int, found: Iterable[object]) -> bool:
    """True if at least `count` are found; stops early, because checking members against each other takes a while."""
    return sum(1 for _ in islice(found, count)) == count


class Voter(Protocol):
    """A member's process with respect to voting."""

    is_api_only: bool
    """True if it leaves timestamps to a microservice."""

    speaks_tls: bool
    """True if it speaks TLS."""

    woken: bool
    """See `Process`."""

    def is_up(self) -> bool:
        """True if it serves and other members can reach it."""

    def votes(self) -> bool:
        """True if it is up and accepts the others' certificates, and they accept its own."""

    def answers(self, asker: Origin) -> bool:
        """True if the member serves and the client can reach it (it may serve while partitioned)."""

    @property
    def served_at(self) -> float | None:
        """The clock time since which it has served, or None."""


@dataclass(slots=True)
class Member:
    """A member of the cluster; its name is empty until its first start."""

    id: int
    name: str
    peer_url: str
    client_url: str = ""
    version: str = ""
    voter: Voter | None = None

    @property
    def healthy(self) -> bool:
        """True if its process votes."""
        return bool(self.name) and self.voter is not None and self.voter.votes()

    @property
    def is_up(self) -> bool:
        """True if its process is up: without TLS, it votes then."""
        return bool(self.name) and self.voter is not None and self.voter.is_up()


@dataclass(frozen=True, slots=True)
class _Regions:
    """See `sandbox.dataplane.tables`."""

    clock: Clock
    stores: Stores

    def split(self) -> int:
        number = len(self.stores.regions)
        self.stores.split(number + 1, self.clock.now())
        return number

    def is_led(self, region: int) -> bool:
        return self.stores.is_led(region)


@dataclass(slots=True)
class LogStream:
    """The storage to which TiKV writes the log of a task, and the last written TSO."""

    disk: Disk
    below: str
    flushed: int


class PdCluster:
    """One PD cluster. The callers hold the data plane's lock."""

    def __init__(self, clock: Clock, randomness: Randomness, timings: Timings, config: Config) -> None:
        self._clock = clock
        self._randomness = randomness
        self._timings = timings
        self.config = config
        self.id = (int(clock.wall().timestamp()) << 32) + randomness.integer(0, 2**32 - 1)
        self.members: dict[int, Member] = {}
        self.removed: set[int] = set()
        self.placement = Placement(config)
        self.stores = Stores(timings, config, self.placement)
        self.etcd = Etcd()
        self.services = Registry()
        self.tables = Tables(lambda: clock.wall().timestamp(), _Regions(clock, self.stores))
        """TiDB's data in TiKV."""
        self.streams: dict[str, LogStream] = {}
        """The storage of each task of log backup."""
        self.flushed_at: dict[int, float] = {}
        """When stores last flushed their log backups on request."""
        self.users = {"root": ""}
        """The SQL users with their passwords, which TiDB keeps in TiKV."""
        self.recovering = False
        self.serving: list[Voter] = []
        """The processes that tick, whether or not they are still members."""
        self._no_leader = False
        self._leader: int | None = None
        self._next_leader: int | None = None
        self._election_at: float | None = None
        self.stores.changed = self.changed

    def admit(self, member: Member) -> None:
        """Add a member of before this world began, which starts later."""
        self.members[member.id] = member

    def prefer(self, member: int) -> None:
        """Elect this member next, if it is healthy then."""
        self._next_leader = member

    @property
    def no_leader(self) -> bool:
        """A fault: no leader can be elected."""
        return self._no_leader

    @no_leader.setter
    def no_leader(self, no_leader: bool) -> None:
        self._no_leader = no_leader
        self.changed()

    @property
    def leader(self) -> Member | None:
        """The leader, or None."""
        return self.leader_with(self.health())

    def health(self) -> dict[int, bool]:
        """By id, whether a member is healthy."""
        if self.needs_tls:
            return {member.id: member.healthy for member in self.members.values()}
        return {member.id: member.is_up for member in self.members.values()}

    def leader_with(self, health: Mapping[int, bool]) -> Member | None:
        """The leader if the members have this health."""
        if self._leader is None or self.no_leader or not health.get(self._leader):
            return None
        return self.members[self._leader] if 2 * sum(health.values()) > len(health) else None

    @property
    def needs_tls(self) -> bool:
        """True if a member speaks TLS or has an https URL; otherwise all members accept each other."""
        # asked at each step of the world: a loop takes half the time of a generator
        for member in self.members.values():
            if member.peer_url.startswith("https:") or (member.voter is not None and member.voter.speaks_tls):
                return True
        return False

    @property
    def is_api_only(self) -> bool:
        """True if its leader leaves timestamps to the microservice tso."""
        leader = self.leader
        return leader is not None and leader.voter is not None and leader.voter.is_api_only

    def gives_timestamps(self) -> bool:
        """True if clients can get timestamps."""
        return self.gives_timestamps_with(self.leader)

    def gives_timestamps_with(self, leader: Member | None) -> bool:
        """The same under this leader."""
        is_api_only = leader is not None and leader.voter is not None and leader.voter.is_api_only
        return not is_api_only or self.services.primary("tso", self._clock.now()) is not None

    def has_quorum(self) -> bool:
        """True if more than half of all members vote, counting those that never started as members."""
        missing = len(self.members) // 2 + 1
        for member in self.members.values():
            missing -= member.healthy
            if not missing:
                return True
        return False

    def add(self, name: str, peer_url: str, client_url: str, version: str) -> Member:
        """Add the first member, which starts immediately."""
        member = Member(self._randomness.integer(1, 2**64 - 1), name, peer_url, client_url, version)
        self.members[member.id] = member
        self.changed()
        return member

    def join(self, name: str, peer_url: str) -> Member:
        """Add a member that has yet to start. Raises JoinRefused.

        As in PD before April 2025, a nameless member even blocks its own pod, unless the pod has its join file: with
        that file it does not call `join`.
        """
        leader = self.leader
        if leader is None:
            raise JoinRefused("etcdserver: no leader")
        for member in self.members.values():
            if not member.name:
                raise JoinRefused(f"there is a member {member.id} that has not joined successfully")
            if member.name == name:
                raise JoinRefused("missing data or join a duplicated pd")
            if member.peer_url == peer_url:
                raise JoinRefused("etcdserver: Peer URLs already exists")
        if not all(member is leader or self._is_connected(member) for member in self.members.values()):
            raise JoinRefused("etcdserver: unhealthy cluster")
        return self.add("", peer_url, "", "")

    def _is_connected(self, member: Member) -> bool:
        """True if a member votes, and has for as long as etcd requires before a membership change."""
        since = member.voter.served_at if member.healthy and member.voter is not None else None
        return since is not None and since <= self._clock.now() - self._timings.pd_connected

    def remove(self, member: int) -> None:
        """Remove a member; its process keeps running. Raises RemovalRefused."""
        others = [each for each in self.members.values() if each.id != member]
        majority = len(others) // 2 + 1
        if sum(bool(each.name) for each in others) < majority:
            raise RemovalRefused("etcdserver: re-configuration failed due to not enough started members")
        active = sum(each.id == self._leader or self._is_connected(each) for each in self.members.values())
        if self.members[member].healthy and active - 1 < majority:
            raise RemovalRefused("etcdserver: unhealthy cluster")
        del self.members[member]
        self.changed()
        self.removed.add(member)
        if member == self._leader:
            self._lose_leader(self._timings.pd_election)

    def transfer(self, member: Member | None) -> None:
        """Hand leadership over to the given member, or to any other."""
        if member is not None and member.id == self._leader:
            return
        others = [each for each in self.members.values() if each.healthy and each.id != self._leader]
        target = member or next(iter(others), None)
        if target is None:
            return
        self._next_leader = target.id
        self._lose_leader(self._timings.pd_election)

    def changed(self) -> None:
        """Record that a tick may be needed: members, votes, the leader or stores have changed."""
        for voter in self.serving:
            voter.woken = True

    def quiet_until(self) -> float:
        """The clock time before which a tick has no effect and returns the same.

        Holds unless `changed` is called or the network is disturbed.
        """
        if self.needs_tls:
            # certificates expire and are renewed while processes run
            return float("-inf")
        if self.leader is None:
            return float("inf") if self._election_at is None else self._election_at
        return self.stores.quiet_until(self._clock.now())

    def tick(self) -> float | None:
        """Elect a leader and move regions; return the clock time of the next due work, or None."""
        now = self._clock.now()
        if self.leader is None:
            election = self._elect(now)
            if self.leader is None:
                return election
        return self.stores.tick(now)

    def _elect(self, now: float) -> float | None:
        if self.no_leader or not self.has_quorum():
            self._election_at = None
            return None
        if self._election_at is None:
            # a cluster with a leader notices its loss late; a fresh one elects immediately
            self._lose_leader(self._timings.pd_leader_loss if self._leader is not None else self._timings.pd_election)
        if self._election_at is None or now < self._election_at:
            return self._election_at
        candidates = [member.id for member in self.members.values() if member.healthy]
        chosen = self._next_leader if self._next_leader in candidates else None
        self._leader = chosen or candidates[self._randomness.integer(0, len(candidates) - 1)]
        self._next_leader = None
        self._election_at = None
        self.stores.new_term(now)
        self.changed()
        return None

    def _lose_leader(self, pause: float) -> None:
        self._leader = None
        self._election_at = self._clock.now() + pause
        self.changed()
