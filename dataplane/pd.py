"""PD's HTTP API (dataplane-apis.md 3).

Ids are unsigned 64-bit integers and stay exact. Decoding ignores unknown fields and fills in zeros that PD omits. A
field of the wrong type or beyond its bounds (`dataplane.answers`) raises MalformedAnswer, which names it.

Removing a member or a store takes it as PD listed it: a LiveMember or LiveStore, which only the reads here create
(design.md 3.6, F5).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Annotated, Protocol, final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from dataplane import regions
from dataplane.addresses import Address
from dataplane.answers import MEMBERS, RULES, STORES, URLS, Count, Id, Name, Text, require_uint64
from dataplane.calls import TIMEOUT, Admit, Caller
from dataplane.errors import ApiError, Conflict, NotBootstrapped, NotFound, SchedulersUnknown, Unavailable
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.transport import Response, Transport

UP = "Up"
OFFLINE = "Offline"
TOMBSTONE = "Tombstone"
DOWN = "Down"
DISCONNECTED = "Disconnected"

_STATE_NAMES = {0: UP, 1: OFFLINE, 2: TOMBSTONE}
_EVICT = "evict-leader-scheduler"
_SCHEDULERS_PATH = "/pd/api/v1/schedulers"
_EVICTIONS_PATH = f"/pd/api/v1/scheduler-config/{_EVICT}/list"
_RULES_PATH = "/pd/api/v1/config/rules"
_TIFLASH_RULES_PATH = f"{_RULES_PATH}/group/tiflash"

_PING_TIMEOUT = 3.0
"""Seconds that PD waits for each silent member, one after another."""

_LONGEST_HEALTH_CALL = 20.0

_LONGEST_STORES = 4 << 20
"""The maximum size of a list of stores in bytes. PD writes 1.0 to 1.6 KB per store, so 2,600 fit; the largest known
clusters have less than a thousand.
"""

_LONGEST_RULES = 8 << 20
"""The maximum size of a list of placement rules in bytes. PD writes about 300 bytes per rule, so 27,000 fit: one for
each table or partition with TiFlash replicas.
"""

_LABELS = 100
"""The maximum number of labels of a store."""

_LOW_SPACE_RATIO = 0.8
"""PD's default."""

_SIZE = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[KMGTPE]i)?B")
_UNITS = {unit: 1024**power for power, unit in enumerate((None, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}

_LIVE_READ = object()


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a PD member as another member sees it. `name` is empty if the member was added but has never
    started.
    """

    name: str
    member_id: int
    client_urls: tuple[str, ...]
    healthy: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A PD member. `name` is empty if the member was added but has never started."""

    name: str
    id: int
    client_urls: tuple[str, ...]
    peer_urls: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMember(Member):
    """A member as PD listed it in this reconcile. Only `PDClient.members` creates one."""

    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a read of PD creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveMember comes from PDClient.members, which asks PD")


@dataclass(frozen=True, slots=True)
class Membership:
    """All members and the leader. `cluster_id` is 0 if PD does not report it."""

    cluster_id: int
    members: tuple[Member, ...]
    leader: Member | None
    etcd_leader: Member | None


@final
@dataclass(frozen=True, slots=True)
class LiveMembership(Membership):
    """All members as PD listed them in this reconcile."""

    members: tuple[LiveMember, ...]

    def member(self, member_id: int) -> LiveMember | None:
        """The member with this id."""
        return next((member for member in self.members if member.id == member_id), None)


def unreported(healths: Iterable[Health], members: Mapping[str, str]) -> list[str]:
    """The names of the members that a health report leaves out; `members` maps their decimal ids to names.

    Such a report says nothing of a quorum: absence is no evidence (R19).
    """
    reported = {str(health.member_id) for health in healths}
    return sorted(name for member_id, name in members.items() if member_id not in reported)


@dataclass(frozen=True, slots=True)
class Space:
    """The disk of a store as the store reports it to PD, in bytes: `available` is free, `used` is the
    store's own data.
    """

    capacity: int
    available: int
    used: int


@dataclass(frozen=True, slots=True)
class Store:
    """A TiKV or TiFlash store.

    `complete` is False if PD omitted half of the record; status skips such a store, which counts as unstable.
    `last_heartbeat` is in nanoseconds since 1970 by PD's clock, `start_timestamp` in seconds by the store's clock; 0
    means unknown. `region_size` is in MiB, None if PD does not report it. `sizes` are the capacity, the free and
    the used space of the disk as texts of PD, e.g. `98.6GiB`.
    """

    id: int
    address: str
    state_name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    leader_count: int = 0
    region_count: int = 0
    version: str = ""
    status_address: str = ""
    start_timestamp: int = 0
    last_heartbeat: int = 0
    complete: bool = True
    region_size: int | None = None
    sizes: tuple[str, str, str] = ("", "", "")

    @property
    def space(self) -> Space | None:
        """The disk of the store; None before its first heartbeat, or if PD writes a size in an unknown format."""
        capacity, available, used = map(_bytes, self.sizes)
        if not capacity or available is None or used is None:
            return None
        return Space(capacity, available, used)

    @property
    def is_tiflash(self) -> bool:
        """True for a TiFlash store, which a label marks."""
        return self.labels.get("engine") == "tiflash"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStore(Store):
    """A store as PD listed it in this reconcile. Only `PDClient.store`, `stores` and `all_stores` create one."""

    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a read of PD creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveStore comes from PDClient.store or PDClient.stores, which ask PD")


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """A rule that makes PD keep `count` replicas of a range of keys, e.g. a table."""

    group_id: str
    id: str
    count: int


@dataclass(frozen=True, slots=True)
class Microservice:
    """A member of a PD microservice. Before v8.3.0 its name is its address, a URL."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """PD's settings for replicas. `enable_placement_rules` is None if PD does not know the option.

    PD moves no data to a store with less than 1 - `low_space_ratio` of its disk free.
    """

    max_replicas: int
    location_labels: tuple[str, ...]
    enable_placement_rules: bool | None
    low_space_ratio: float = _LOW_SPACE_RATIO


class PDReads(Protocol):
    """The reads of `PDClient`, as shared by the stages of a reconcile.

    `PDClient` documents each read and its errors.
    """

    @property
    def base_url(self) -> str:
        """The URL that reads are sent to."""

    def health(self, members: int = 3) -> tuple[Health, ...]:
        """The health of all members."""

    def members(self) -> Membership:
        """All members."""

    def cluster_id(self) -> int:
        """The id of the cluster, which lives as long as PD's data."""

    def config(self) -> ReplicationConfig:
        """The settings for placement."""

    def replicas(self) -> int:
        """The largest number of replicas of any region."""

    def tiflash_rules(self) -> tuple[PlacementRule, ...]:
        """The rules that place replicas of tables on TiFlash."""

    def stores(self) -> tuple[LiveStore, ...]:
        """The stores that are not Tombstone."""

    def all_stores(self) -> tuple[LiveStore, ...]:
        """The stores in any state."""

    def evicting_stores(self) -> frozenset[int]:
        """The stores that an eviction moves leaders away from."""

    def reads_before_removal(self, *, tiflash: bool) -> Sequence[Callable[[], object]]:
        """The reads that the operator needs before it removes a store."""

    def microservice_members(self, service: str) -> tuple[Microservice, ...] | None:
        """The members of a microservice."""

    def microservice_primary(self, service: str) -> str:
        """The address of its primary."""


class PDClient:
    """One PD, or the Service in front of all PD members. Thread-safe."""

    def __init__(
        self,
        transport: Transport,
        base_url: Address,
        fence: Fence | None = None,
        clock: Clock | None = None,
        admit: Admit | None = None,
    ) -> None:
        """A client of the PD at `base_url`, e.g. `http://demo-pd.ns:2379`. The first call connects.

        `admit` decides which redirects the client follows; without it, none.
        """
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock(), admit)

    @property
    def base_url(self) -> Address:
        """The URL that this client sends requests to."""
        return self._call.base_url

    def health(self, members: int = 3) -> tuple[Health, ...]:
        """The health of all members, as one member sees it; `members` is the expected number.

        PD pings dead members one after another, so the timeout grows with `members`. Raises Unavailable, ApiError.
        """
        timeout = min(max(TIMEOUT, members * _PING_TIMEOUT + 2), _LONGEST_HEALTH_CALL)
        return tuple(
            Health(entry.name, entry.member_id, tuple(entry.client_urls or ()), entry.health)
            for entry in self._call.get_json("/pd/api/v1/health", _HEALTH, timeout=timeout) or ()
        )

    def members(self, timeout: float = TIMEOUT) -> LiveMembership:
        """All members. Raises Unavailable, ApiError."""
        members = self._call.get_json("/pd/api/v1/members", _MEMBERS, timeout=timeout)
        return LiveMembership(
            members.header.cluster_id if members.header else 0,
            tuple(LiveMember(*_fields(entry), maker=_LIVE_READ) for entry in members.members or ()),
            _named(members.leader),
            _named(members.etcd_leader),
        )

    def leader(self) -> Member:
        """The leader. Raises Unavailable if there is none; ApiError."""
        path = "/pd/api/v1/leader"
        leader = _named(self._call.get_json(path, _LEADER))
        if leader is None:
            # a leader that resigns answers null for itself
            raise Unavailable("GET", self.base_url + path, "PD has no leader")
        return leader

    def transfer_leader(self, name: str) -> None:
        """Ask PD to make `name` the leader, which takes up to about a second after the answer.

        An unknown member is not an error. Raises Unavailable, ApiError, LeaseExpired.
        """
        path = f"/pd/api/v1/leader/transfer/{quote(name, safe='')}"
        self._call.write("POST", path, also=_NOT_FOUND, done="PD leader transfer begun", about={"to": name})

    def resign_leader(self) -> None:
        """Ask the leader to hand over to any other member. Raises Unavailable, ApiError, LeaseExpired."""
        self._call.write("POST", "/pd/api/v1/leader/resign", done="PD leader asked to resign", about={})

    def delete_member(self, member: LiveMember) -> None:
        """Remove a member that PD has listed; one that is no longer listed counts as removed.

        Raises Conflict if PD refuses, or agrees and lists the member all the same; TypeError if PD has not listed the
        member; Unavailable, ApiError, LeaseExpired.
        """
        if not isinstance(member, LiveMember):
            raise TypeError(f"a member is removed as PD shows it: take it from PDClient.members, not {member!r}")
        if self.members().member(member.id):
            path = f"/pd/api/v1/members/id/{member.id}"
            about = {"member": member.name or "one that never started", "member_id": member.id}
            answer = self._call.write("DELETE", path, also=_NOT_FOUND, done="PD member removed", about=about)
            if self.members().member(member.id):
                raise self._contradiction("DELETE", path, answer, "it has removed the member, but lists it")

    def cluster_id(self) -> int:
        """The id of the cluster, which lives as long as PD's data. Raises Unavailable, ApiError."""
        return self._call.get_json("/pd/api/v1/cluster", _CLUSTER).id

    def config(self) -> ReplicationConfig:
        """PD's settings for placement. Raises Unavailable, ApiError."""
        config = self._call.get_json("/pd/api/v1/config", _CONFIG)
        found = config.replication
        return ReplicationConfig(
            found.max_replicas,
            tuple(label for label in found.location_labels.split(",") if label),
            None if found.enable_placement_rules is None else found.enable_placement_rules == "true",
            config.schedule.low_space_ratio if config.schedule else _LOW_SPACE_RATIO,
        )

    def replicas(self) -> int:
        """The largest number of replicas of any region by max-replicas and placement rules, without learners.

        Rules of one group for the same keys add up; other groups may override them. Raises NotBootstrapped,
        Unavailable, ApiError.
        """
        wanted: Counter[tuple[str, str, str]] = Counter()
        for rule in self._rules(_RULES_PATH):
            if rule.role != "learner":
                wanted[rule.group_id, rule.start_key, rule.end_key] += rule.count
        return max(self.config().max_replicas, *wanted.values(), 0)

    def tiflash_rules(self) -> tuple[PlacementRule, ...]:
        """The rules that place replicas of tables on TiFlash; none while placement rules are disabled.

        Raises Unavailable, ApiError.
        """
        return tuple(PlacementRule(rule.group_id, rule.id, rule.count) for rule in self._rules(_TIFLASH_RULES_PATH))

    def reads_before_removal(self, *, tiflash: bool) -> Sequence[Callable[[], object]]:
        """The reads that the operator needs before it removes a store; they are independent and may run
        concurrently.
        """
        if tiflash:
            return (self.config, partial(self._rules, _TIFLASH_RULES_PATH))
        return (self.config, partial(self._rules, _RULES_PATH), self._scheduler_names, self._eviction_ids)

    def enable_placement_rules(self) -> None:
        """Enable placement rules, which TiFlash needs. Raises Unavailable, ApiError, LeaseExpired."""
        body = {"enable-placement-rules": "true"}
        self._call.write("POST", "/pd/api/v1/config/replicate", body, done="placement rules enabled", about={})

    def is_recovering(self) -> bool:
        """True while a restore of volume snapshots runs. Raises Unavailable, ApiError."""
        return self._call.get_json("/pd/api/v1/admin/cluster/markers/snapshot-recovering", _MARKER).marked

    def is_bootstrapped(self) -> bool:
        """True once the first TiKV has registered. Raises Unavailable, ApiError."""
        try:
            self.all_stores()
        except NotBootstrapped:
            return False
        return True

    def stores(self) -> tuple[LiveStore, ...]:
        """The stores that are not Tombstone, by id. Raises NotBootstrapped, Unavailable, ApiError."""
        return tuple(store for store in self.all_stores() if store.state_name != TOMBSTONE)

    def all_stores(self) -> tuple[LiveStore, ...]:
        """The stores in any state, Tombstone included, by id. Raises NotBootstrapped, Unavailable, ApiError."""
        path = "/pd/api/v1/stores?state=0&state=1&state=2"
        found = self._call.get_json(path, _STORES, longest=_LONGEST_STORES).stores or ()
        return tuple(sorted(map(_store, found), key=lambda store: store.id))

    def regions_behind(self) -> tuple[regions.Region, ...]:
        """The regions with a peer that is down or pending, by id, learners included.

        A new leader lists few until the regions have reported, which `evicting_stores` shows. Raises Unavailable, with
        AnswerRefused as its cause if the list is too long; NotBootstrapped, ApiError.
        """
        return regions.behind(
            partial(
                self._call.get_json,
                decoder=regions.DECODER,
                longest=regions.LONGEST_REGIONS,
                bytes_per_value=regions.REGION_BYTES_PER_VALUE,
            )
        )

    def store(self, store_id: int) -> LiveStore:
        """One store in any state. Raises NotFound, NotBootstrapped, Unavailable, ApiError."""
        return _store(self._call.get_json(f"/pd/api/v1/store/{store_id}", _STORE))

    def delete_store(
        self, store: LiveStore, may_go: Callable[[Sequence[LiveStore]], bool] = lambda _listed: True
    ) -> bool:
        """Take a store that PD has listed out of service: PD moves its data away, then makes it Tombstone.

        A store that is not listed or already removed is not an error. Immediately before the request, `may_go` receives
        the stores that PD lists; if it returns False, nothing is sent and the result is False. Raises Conflict if the
        id now has another address, PD has too few stores left, or PD agrees and lists the store as before all the same;
        TypeError if PD has not listed the store; Unavailable, ApiError, LeaseExpired.
        """
        path = f"/pd/api/v1/store/{_shown(store).id}"
        stores = self.stores()
        found = next((each for each in stores if each.id == store.id), None)
        if found is None:
            return True
        self._require_same_address("DELETE", path, store, found)
        if not may_go(stores):
            return False
        about = {"store": store.id, "address": store.address}
        answer = self._call.write("DELETE", path, also=_GONE, done="store removal begun", about=about)
        after = next((each for each in self.stores() if each.id == store.id), None)
        if after is not None and (answer.status in _GONE or after.state_name != OFFLINE):
            removed = "is gone" if answer.status in _GONE else "leaves"
            what = f"it says that the store {removed}, but lists it as {after.state_name}"
            raise self._contradiction("DELETE", path, answer, what)
        return True

    def restore_store(self, store: LiveStore) -> None:
        """Undo `delete_store` while the store is not yet Tombstone; a store that is Up stays Up.

        Raises Conflict if the store is Tombstone, the id now has another address, or PD agrees and shows the store as
        leaving all the same; TypeError if PD has not listed the store; NotFound, Unavailable, ApiError, LeaseExpired.
        """
        path = f"/pd/api/v1/store/{_shown(store).id}/state?state={UP}"
        self._require_same_address("POST", path, store, self.store(store.id))
        about = {"store": store.id, "address": store.address}
        answer = self._call.write("POST", path, done="store removal taken back", about=about)
        found = self.store(store.id)
        if found.state_name in (OFFLINE, TOMBSTONE):
            # the caller would forget the removal now
            what = f"it agreed to keep the store, but shows it as {found.state_name}"
            raise self._contradiction("POST", path, answer, what)

    def set_store_labels(self, store_id: int, labels: Mapping[str, str]) -> None:
        """Add labels to a store; its other labels stay. Raises Unavailable, ApiError, LeaseExpired."""
        path = f"/pd/api/v1/store/{store_id}/label"
        about = {"store": store_id, "labels": dict(labels)}
        self._call.write("POST", path, dict(labels), done="labels of a store set", about=about)

    def begin_evict_leaders(self, store_id: int) -> None:
        """Ask PD to move a store's leaders away until `end_evict_leaders`. Idempotent.

        Raises Unavailable, ApiError, LeaseExpired.
        """
        try:
            body = {"name": _EVICT, "store_id": store_id}
            self._call.write(
                "POST", _SCHEDULERS_PATH, body, done="eviction of leaders begun", about={"store": store_id}
            )
        except ApiError:
            # PD rejects an eviction that exists already, in varying words
            if store_id not in self.evicting_stores():
                raise

    def end_evict_leaders(self, store_id: int, *, confirm: bool = True) -> None:
        """End the eviction of a store, if one exists. Raises Unavailable, ApiError, LeaseExpired.

        `confirm` checks afterwards that PD no longer lists it; False is enough for a store without leaders.
        """
        path = f"/pd/api/v1/schedulers/{_EVICT}-{store_id}"
        try:
            answer = self._call.write("DELETE", path, done="eviction of leaders ended", about={"store": store_id})
        except ApiError:
            # a new leader answers 404 before it has started its schedulers
            if store_id in self.evicting_stores():
                raise
            return
        if confirm and store_id in (self._evicting_stores() or ()):
            raise ApiError("DELETE", self.base_url + path, answer.status, answer.body, "the scheduler still exists")

    def evicting_stores(self) -> frozenset[int]:
        """The ids of the stores that an eviction moves leaders away from.

        Raises SchedulersUnknown while PD runs no scheduler at all, as a new leader does for a while; also Unavailable,
        NotBootstrapped, ApiError.
        """
        found = self._evicting_stores()
        if found is None:
            reason = (
                "PD runs no schedulers, so it may not have loaded those that evict leaders; if that lasts, add one "
                "with pd-ctl, such as balance-leader-scheduler"
            )
            raise SchedulersUnknown("GET", self.base_url + _SCHEDULERS_PATH, reason)
        return found

    def microservice_members(self, service: str) -> tuple[Microservice, ...] | None:
        """The members of `tso` or `scheduling`; None if PD is not in microservice mode. Raises Unavailable,
        ApiError.
        """
        try:
            microservices = self._call.get_json(f"/pd/api/v2/ms/members/{service}", _MICROSERVICES)
        except NotFound:
            return None
        return tuple(
            Microservice(microservice.name or microservice.address, microservice.address)
            for microservice in microservices or ()
        )

    def microservice_primary(self, service: str) -> str:
        """The address of the primary of `tso` or `scheduling`, or empty. Raises Unavailable, ApiError."""
        try:
            return self._call.get_json(f"/pd/api/v2/ms/primary/{service}", _TEXT)
        except NotFound:
            # PD is not in microservice mode
            return ""

    def ready(self) -> bool:
        """True if this member has loaded its regions; members older than v8.5.2 always report True.

        Before the first TiKV there are no regions, and the leader reports False (seen with v8.5.2). Call a member, not
        the Service. Raises Unavailable.
        """
        try:
            self._call.get("/pd/api/v2/ready", also=_NOT_FOUND)
        except ApiError:
            return False
        return True

    def votes(self, timeout: float = TIMEOUT) -> bool:
        """True if this member has a leader and reads with the quorum, according to its etcd.

        A member without this route (404) counts as voting. Call a member, not the Service. Raises Unavailable if it
        does not answer; ApiError.
        """
        answer = self._call.get("/health", also=frozenset({404, 503}), timeout=timeout)
        return answer.status != 503

    def _rules(self, path: str) -> Sequence["_Rule"]:
        """Placement rules; none while they are disabled, or if PD is too old to have them."""
        try:
            return self._call.get_json(path, _RULES, longest=_LONGEST_RULES) or ()
        except (Conflict, NotFound):
            return ()

    def _scheduler_names(self) -> Sequence[str]:
        return self._call.get_json(_SCHEDULERS_PATH, _SCHEDULERS) or ()

    def _eviction_ids(self) -> Iterable[int]:
        """The store ids in the configuration of the shared scheduler. Raises NotFound if PD runs none."""
        return self._call.get_json(_EVICTIONS_PATH, _EVICT_CONFIG).ranges or ()

    def _evicting_stores(self) -> frozenset[int] | None:
        """The stores under eviction; None while PD runs no schedulers."""
        names = self._scheduler_names()
        if not names:
            return None
        # PD 3.x has one scheduler per store; later versions have one for all stores, whose configuration lists them
        ids = set(_trailing_ids(names))
        if _EVICT not in names:
            return frozenset(ids)
        try:
            return frozenset(ids.union(self._eviction_ids()))
        except NotFound:
            # the scheduler ended between the two reads, or the leader did
            return None

    def _contradiction(self, method: str, path: str, answer: Response, what: str) -> Conflict:
        """The error for a write that PD agreed to, but whose effect it does not show: the caller must not repeat it
        at once.
        """
        return Conflict(method, self.base_url + path, answer.status, b"", f"PD contradicts itself: {what}")

    def _require_same_address(self, method: str, path: str, store: LiveStore, found: LiveStore) -> None:
        if found.address != store.address:
            reason = f"not sent: store {store.id} now has the address {found.address}, not {store.address}"
            raise Conflict(method, self.base_url + path, 0, b"", reason)


_NOT_FOUND = frozenset({404})
_GONE = frozenset({404, 410})


_Urls = Annotated[list[Name], Meta(max_length=URLS)] | None


class _Health(msgspec.Struct):
    name: Name = ""
    member_id: Id = 0
    client_urls: _Urls = None
    health: bool = False

    def __post_init__(self) -> None:
        require_uint64(member_id=self.member_id)


class _Member(msgspec.Struct):
    name: Name = ""
    member_id: Id = 0
    client_urls: _Urls = None
    peer_urls: _Urls = None

    def __post_init__(self) -> None:
        require_uint64(member_id=self.member_id)


class _Header(msgspec.Struct):
    cluster_id: Id = 0

    def __post_init__(self) -> None:
        require_uint64(cluster_id=self.cluster_id)


class _Members(msgspec.Struct):
    header: _Header | None = None
    members: Annotated[list[_Member], Meta(max_length=MEMBERS)] | None = None
    leader: _Member | None = None
    etcd_leader: _Member | None = None


class _Microservice(msgspec.Struct):
    name: Name = ""
    address: Name = msgspec.field(name="service-addr", default="")


class _Cluster(msgspec.Struct):
    id: Id

    def __post_init__(self) -> None:
        require_uint64(id=self.id)


class _Replication(msgspec.Struct, rename="kebab"):
    max_replicas: Count
    location_labels: Text = ""
    enable_placement_rules: Name | None = None


class _Schedule(msgspec.Struct, rename="kebab"):
    low_space_ratio: Annotated[float, Meta(ge=0, le=1)] = _LOW_SPACE_RATIO


class _Config(msgspec.Struct):
    replication: _Replication
    schedule: _Schedule | None = None


class _Label(msgspec.Struct):
    key: Name = ""
    value: Name = ""


class _StoreMeta(msgspec.Struct):
    id: Id = 0
    address: Name = ""
    state: Count = 0
    state_name: Name = ""
    labels: Annotated[list[_Label], Meta(max_length=_LABELS)] | None = None
    version: Name = ""
    status_address: Name = ""
    start_timestamp: int = 0
    last_heartbeat: int = 0

    def __post_init__(self) -> None:
        require_uint64(id=self.id)


class _StoreStatus(msgspec.Struct):
    leader_count: Count = 0
    region_count: Count = 0
    region_size: Count | None = None
    capacity: Name = ""
    available: Name = ""
    used_size: Name = ""


class _StoreInfo(msgspec.Struct):
    store: _StoreMeta | None = None
    status: _StoreStatus | None = None


class _Stores(msgspec.Struct):
    stores: Annotated[list[_StoreInfo], Meta(max_length=STORES)] | None = None


class _Marker(msgspec.Struct):
    marked: bool = False


class _Rule(msgspec.Struct):
    group_id: Text = ""
    id: Text = ""
    start_key: str = ""
    end_key: str = ""
    role: Name = ""
    count: Count = 0


class _EvictConfig(msgspec.Struct):
    ranges: Annotated[dict[Id, msgspec.Raw], Meta(max_length=STORES)] | None = msgspec.field(
        name="store-id-ranges", default=None
    )


# Go sends empty lists and objects as null
_HEALTH = msgspec.json.Decoder(Annotated[list[_Health], Meta(max_length=MEMBERS)] | None)
_LEADER = msgspec.json.Decoder(_Member | None)
_SCHEDULERS = msgspec.json.Decoder(Annotated[list[Name], Meta(max_length=STORES)] | None)
_MEMBERS = msgspec.json.Decoder(_Members)
_MICROSERVICES = msgspec.json.Decoder(Annotated[list[_Microservice], Meta(max_length=MEMBERS)] | None)
_TEXT = msgspec.json.Decoder(Name)
_CLUSTER = msgspec.json.Decoder(_Cluster)
_CONFIG = msgspec.json.Decoder(_Config)
_STORE = msgspec.json.Decoder(_StoreInfo)
_RULES = msgspec.json.Decoder(Annotated[list[_Rule], Meta(max_length=RULES)] | None)
_MARKER = msgspec.json.Decoder(_Marker)
_STORES = msgspec.json.Decoder(_Stores)
_EVICT_CONFIG = msgspec.json.Decoder(_EvictConfig)


def _fields(entry: _Member) -> tuple[str, int, tuple[str, ...], tuple[str, ...]]:
    return entry.name, entry.member_id, tuple(entry.client_urls or ()), tuple(entry.peer_urls or ())


def _named(entry: _Member | None) -> Member | None:
    return Member(*_fields(entry)) if entry is not None and entry.name else None


def _shown(store: LiveStore) -> LiveStore:
    if not isinstance(store, LiveStore):
        raise TypeError(f"a store is taken as PD shows it: from PDClient.store or PDClient.stores, not {store!r}")
    return store


def _store(info: _StoreInfo) -> LiveStore:
    meta, status = info.store or _StoreMeta(), info.status or _StoreStatus()
    return LiveStore(
        id=meta.id,
        address=meta.address,
        state_name=meta.state_name or _STATE_NAMES.get(meta.state, str(meta.state)),
        labels={label.key: label.value for label in meta.labels or ()},
        leader_count=status.leader_count,
        region_count=status.region_count,
        version=meta.version,
        status_address=meta.status_address,
        start_timestamp=meta.start_timestamp,
        last_heartbeat=meta.last_heartbeat,
        complete=info.store is not None and info.status is not None,
        region_size=status.region_size,
        sizes=(status.capacity, status.available, status.used_size),
        maker=_LIVE_READ,
    )


def _bytes(size: str) -> int | None:
    """The bytes of a size such as `98.6GiB`; None if the text is not a size."""
    match = _SIZE.fullmatch(size)
    return int(float(match["number"]) * _UNITS[match["unit"]]) if match else None


def _trailing_ids(names: Iterable[str]) -> Iterable[int]:
    for name in names:
        tail = name.removeprefix(f"{_EVICT}-")
        if tail != name and tail.isdecimal():
            yield int(tail)
