"""PD's HTTP API (dataplane-apis.md 3).

Ids are unsigned 64-bit integers and stay exact. Unknown fields are ignored; what PD leaves out because it is zero is
filled in; a field of the wrong type or beyond its bounds (`dataplane.answers`) raises MalformedAnswer, which names it.

Removing a member or a store takes it as PD showed it: LiveMember, LiveStore, which nothing but the reads here make
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

from dataplane.addresses import Address
from dataplane.answers import MEMBERS, RULES, STORES, URLS, Count, Id, Name, Text, require_uint64
from dataplane.calls import TIMEOUT, Admit, Caller
from dataplane.errors import ApiError, Conflict, NotBootstrapped, NotFound, Unavailable
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.transport import Transport

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
"""Seconds that PD waits for each member that does not answer, one after the other."""

_LONGEST_HEALTH_CALL = 20.0

_LONGEST_STORES = 4 << 20
"""Bytes of a list of stores. PD writes 1.0 to 1.6 KB for each, so that 2,600 fit; the largest clusters known have less
than a thousand."""

_LONGEST_RULES = 8 << 20
"""Bytes of a list of placement rules. PD writes about 300 for each, so that 27,000 fit: one for each table or
partition that has replicas on TiFlash."""

_LABELS = 100
"""Labels of a store."""

_LOW_SPACE_RATIO = 0.8
"""PD's default."""

_SIZE = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>[KMGTPE]i)?B")
_UNITS = {unit: 1024**power for power, unit in enumerate((None, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}

_LIVE_READ = object()


@dataclass(frozen=True, slots=True)
class Health:
    """What one PD member thinks of another. `name` is empty while the member was added but never started."""

    name: str
    member_id: int
    client_urls: tuple[str, ...]
    healthy: bool


@dataclass(frozen=True, slots=True)
class Member:
    """One member of PD. `name` is empty while the member was added but never started."""

    name: str
    id: int
    client_urls: tuple[str, ...]
    peer_urls: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMember(Member):
    """A member as PD showed it in this reconcile. Made by `PDClient.members` only."""

    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError for any maker but a read of PD."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveMember comes from PDClient.members, which asks PD")


@dataclass(frozen=True, slots=True)
class Membership:
    """All members, and who leads. `cluster_id` is 0 when PD does not tell."""

    cluster_id: int
    members: tuple[Member, ...]
    leader: Member | None
    etcd_leader: Member | None


@final
@dataclass(frozen=True, slots=True)
class LiveMembership(Membership):
    """All members as PD showed them in this reconcile."""

    members: tuple[LiveMember, ...]

    def member(self, member_id: int) -> LiveMember | None:
        """The member of this id."""
        return next((member for member in self.members if member.id == member_id), None)


@dataclass(frozen=True, slots=True)
class Space:
    """The disk of a store as it reports it to PD, in bytes. `available` is free; `used` is taken by the store."""

    capacity: int
    available: int
    used: int


@dataclass(frozen=True, slots=True)
class Store:
    """One TiKV or TiFlash store.

    `complete` is False when PD left out half of the record: such a store is skipped in status and counts as unstable.
    `last_heartbeat`, by PD's clock, is in nanoseconds since 1970, `start_timestamp`, by the store's own, in seconds; 0
    when unknown. `region_size` is in MiB; it and `space` are None when PD does not report them.
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
    space: Space | None = None

    @property
    def is_tiflash(self) -> bool:
        """Whether the store belongs to TiFlash, which says so with a label."""
        return self.labels.get("engine") == "tiflash"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStore(Store):
    """A store as PD showed it in this reconcile. Made by `PDClient.store`, `stores` and `all_stores` only."""

    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError for any maker but a read of PD."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveStore comes from PDClient.store or PDClient.stores, which ask PD")


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """A rule by which PD keeps `count` replicas of some keys, such as those of a table."""

    group_id: str
    id: str
    count: int


@dataclass(frozen=True, slots=True)
class Microservice:
    """One member of a PD microservice; before v8.3.0 its name is its address, a URL."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """How PD places replicas. `enable_placement_rules` is None when PD does not know the option.

    PD moves nothing to a store with less than 1 - `low_space_ratio` of its disk free.
    """

    max_replicas: int
    location_labels: tuple[str, ...]
    enable_placement_rules: bool | None
    low_space_ratio: float = _LOW_SPACE_RATIO


class PDReads(Protocol):
    """The part of `PDClient` that changes nothing: answers that the stages of a reconcile share come as this.

    See `PDClient` for what each read means and raises.
    """

    @property
    def base_url(self) -> str:
        """Where the reads go."""

    def health(self, members: int = 3) -> tuple[Health, ...]:
        """The health of all members."""

    def members(self) -> Membership:
        """All members."""

    def cluster_id(self) -> int:
        """The id that lives as long as PD's data."""

    def config(self) -> ReplicationConfig:
        """What decides placement."""

    def replicas(self) -> int:
        """The most replicas that a region has."""

    def tiflash_rules(self) -> tuple[PlacementRule, ...]:
        """The rules by which tables have replicas on TiFlash."""

    def stores(self) -> tuple[LiveStore, ...]:
        """The stores that are not Tombstone."""

    def all_stores(self) -> tuple[LiveStore, ...]:
        """The stores in any state."""

    def evicting_stores(self) -> frozenset[int]:
        """The stores whose leaders are being moved away."""

    def reads_before_removal(self, *, tiflash: bool) -> Sequence[Callable[[], object]]:
        """What is asked before a store is removed."""

    def microservice_members(self, service: str) -> tuple[Microservice, ...] | None:
        """The members of a microservice."""

    def microservice_primary(self, service: str) -> str:
        """The address of its primary."""


class PDClient:
    """One PD, or the Service in front of all its members. Safe for use by many threads."""

    def __init__(
        self,
        transport: Transport,
        base_url: Address,
        fence: Fence | None = None,
        clock: Clock | None = None,
        admit: Admit | None = None,
    ) -> None:
        """A client of the PD at `base_url`, such as `http://demo-pd.ns:2379`. Connects with the first call.

        `admit` decides which redirects are followed; without it none is.
        """
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock(), admit)

    @property
    def base_url(self) -> Address:
        """Where this client sends its requests."""
        return self._call.base_url

    def health(self, members: int = 3) -> tuple[Health, ...]:
        """The health of all members, as seen from one. `members` is how many are expected.

        PD pings dead members one after another, so the call may take longer than others.
        Raises Unavailable, ApiError.
        """
        timeout = min(max(TIMEOUT, members * _PING_TIMEOUT + 2), _LONGEST_HEALTH_CALL)
        return tuple(
            Health(entry.name, entry.member_id, tuple(entry.client_urls or ()), entry.health)
            for entry in self._call.get_json("/pd/api/v1/health", _HEALTH, timeout=timeout) or ()
        )

    def members(self, timeout: float = TIMEOUT) -> LiveMembership:
        """All members. Raises Unavailable, ApiError."""
        found = self._call.get_json("/pd/api/v1/members", _MEMBERS, timeout=timeout)
        return LiveMembership(
            found.header.cluster_id if found.header else 0,
            tuple(LiveMember(*_fields(entry), maker=_LIVE_READ) for entry in found.members or ()),
            _named(found.leader),
            _named(found.etcd_leader),
        )

    def leader(self) -> Member:
        """The leader. Raises Unavailable when there is none, also ApiError."""
        path = "/pd/api/v1/leader"
        leader = _named(self._call.get_json(path, _LEADER))
        if leader is None:
            # a leader that is resigning answers null for itself
            raise Unavailable("GET", self.base_url + path, "PD has no leader")
        return leader

    def transfer_leader(self, name: str) -> None:
        """Ask that `name` becomes the leader; PD moves within about a second after the answer.

        A member that does not exist is not an error. Raises Unavailable, ApiError, LeaseExpired.
        """
        path = f"/pd/api/v1/leader/transfer/{quote(name, safe='')}"
        self._call.write("POST", path, also=_NOT_FOUND, done="PD leader transfer begun", about={"to": name})

    def resign_leader(self) -> None:
        """Ask the leader to hand over to any other member. Raises Unavailable, ApiError, LeaseExpired."""
        self._call.write("POST", "/pd/api/v1/leader/resign", done="PD leader asked to resign", about={})

    def delete_member(self, member: LiveMember) -> None:
        """Remove a member that PD has shown; one that is not listed any more is gone already.

        Raises TypeError for a member that PD has not shown; Conflict, Unavailable, ApiError, LeaseExpired.
        """
        if not isinstance(member, LiveMember):
            raise TypeError(f"a member is removed as PD shows it: take it from PDClient.members, not {member!r}")
        if self.members().member(member.id):
            path = f"/pd/api/v1/members/id/{member.id}"
            about = {"member": member.name or "one that never started", "member_id": member.id}
            self._call.write("DELETE", path, also=_NOT_FOUND, done="PD member removed", about=about)

    def cluster_id(self) -> int:
        """The id that lives as long as PD's data. Raises Unavailable, ApiError."""
        return self._call.get_json("/pd/api/v1/cluster", _CLUSTER).id

    def config(self) -> ReplicationConfig:
        """The part of PD's configuration that decides placement. Raises Unavailable, ApiError."""
        config = self._call.get_json("/pd/api/v1/config", _CONFIG)
        found = config.replication
        return ReplicationConfig(
            found.max_replicas,
            tuple(label for label in found.location_labels.split(",") if label),
            None if found.enable_placement_rules is None else found.enable_placement_rules == "true",
            config.schedule.low_space_ratio if config.schedule else _LOW_SPACE_RATIO,
        )

    def replicas(self) -> int:
        """The most replicas that a region has, by max-replicas and by placement rules, learners not counted.

        Rules of one group for the same keys add up; other groups may override them. Raises NotBootstrapped,
        Unavailable, ApiError.
        """
        wanted: Counter[tuple[str, str, str]] = Counter()
        for rule in self._rules(_RULES_PATH):
            if rule.role != "learner":
                wanted[rule.group_id, rule.start_key, rule.end_key] += rule.count
        return max(self.config().max_replicas, *wanted.values(), 0)

    def tiflash_rules(self) -> tuple[PlacementRule, ...]:
        """The rules by which tables have replicas on TiFlash; none while rules are off.

        Raises Unavailable, ApiError.
        """
        return tuple(PlacementRule(rule.group_id, rule.id, rule.count) for rule in self._rules(_TIFLASH_RULES_PATH))

    def reads_before_removal(self, *, tiflash: bool) -> Sequence[Callable[[], object]]:
        """What is asked before a store is removed, each request by itself, so that they can go out side by side."""
        if tiflash:
            return (self.config, partial(self._rules, _TIFLASH_RULES_PATH))
        return (self.config, partial(self._rules, _RULES_PATH), self._scheduler_names, self._eviction_ids)

    def enable_placement_rules(self) -> None:
        """Let PD place replicas by rules, as TiFlash needs it. Raises Unavailable, ApiError, LeaseExpired."""
        body = {"enable-placement-rules": "true"}
        self._call.write("POST", "/pd/api/v1/config/replicate", body, done="placement rules enabled", about={})

    def is_recovering(self) -> bool:
        """Whether a restore of volume snapshots has yet to end. Raises Unavailable, ApiError."""
        return self._call.get_json("/pd/api/v1/admin/cluster/markers/snapshot-recovering", _MARKER).marked

    def is_bootstrapped(self) -> bool:
        """Whether a first TiKV has registered. Raises Unavailable, ApiError."""
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

    def store(self, store_id: int) -> LiveStore:
        """One store in any state. Raises NotFound, NotBootstrapped, Unavailable, ApiError."""
        return _store(self._call.get_json(f"/pd/api/v1/store/{store_id}", _STORE))

    def delete_store(
        self, store: LiveStore, may_go: Callable[[Sequence[LiveStore]], bool] = lambda _listed: True
    ) -> bool:
        """Take a store that PD has shown out of service: its data moves away, then it becomes Tombstone.

        A store that is not listed, or removed already, is no error. False when nothing was sent because `may_go`, which
        gets the stores that PD lists right before, says no. Raises Conflict when another address has its id by
        now, or when PD has too few stores left; TypeError for a store that PD has not shown; Unavailable, ApiError,
        LeaseExpired.
        """
        path = f"/pd/api/v1/store/{_shown(store).id}"
        listed = self.stores()
        found = next((each for each in listed if each.id == store.id), None)
        if found is None:
            return True
        self._require_same_address("DELETE", path, store, found)
        if not may_go(listed):
            return False
        about = {"store": store.id, "address": store.address}
        self._call.write("DELETE", path, also=_GONE, done="store removal begun", about=about)
        return True

    def restore_store(self, store: LiveStore) -> None:
        """Take back what `delete_store` began, while the store is not Tombstone yet; one that is Up stays so.

        Raises Conflict when the store is Tombstone, or another address has its id by now; TypeError for a store that PD
        has not shown; NotFound, Unavailable, ApiError, LeaseExpired.
        """
        path = f"/pd/api/v1/store/{_shown(store).id}/state?state={UP}"
        self._require_same_address("POST", path, store, self.store(store.id))
        about = {"store": store.id, "address": store.address}
        self._call.write("POST", path, done="store removal taken back", about=about)

    def set_store_labels(self, store_id: int, labels: Mapping[str, str]) -> None:
        """Add labels to a store; others stay. Raises Unavailable, ApiError, LeaseExpired."""
        path = f"/pd/api/v1/store/{store_id}/label"
        about = {"store": store_id, "labels": dict(labels)}
        self._call.write("POST", path, dict(labels), done="labels of a store set", about=about)

    def begin_evict_leaders(self, store_id: int) -> None:
        """Ask that a store's leaders move away, until `end_evict_leaders`. Idempotent.

        Raises Unavailable, ApiError, LeaseExpired.
        """
        try:
            body = {"name": _EVICT, "store_id": store_id}
            self._call.write(
                "POST", _SCHEDULERS_PATH, body, done="eviction of leaders begun", about={"store": store_id}
            )
        except ApiError:
            # PD refuses in many words what is there already
            if store_id not in self.evicting_stores():
                raise

    def end_evict_leaders(self, store_id: int, *, confirm: bool = True) -> None:
        """End the eviction of a store, if there is one. Raises Unavailable, ApiError, LeaseExpired.

        Without `confirm`, PD is not asked whether what it has ended is gone: for a store that leads nothing any more.
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
        """The ids of the stores whose leaders are being moved away.

        Raises Unavailable while PD runs no scheduler at all, as a new leader does for a while, whatever it is going to
        run; also NotBootstrapped, ApiError.
        """
        found = self._evicting_stores()
        if found is None:
            reason = (
                "PD runs no schedulers, so it may not have loaded those that evict leaders; if that lasts, add one "
                "with pd-ctl, such as balance-leader-scheduler"
            )
            raise Unavailable("GET", self.base_url + _SCHEDULERS_PATH, reason)
        return found

    def microservice_members(self, service: str) -> tuple[Microservice, ...] | None:
        """The members of `tso` or `scheduling`; None when PD is not in that mode. Raises Unavailable, ApiError."""
        try:
            found = self._call.get_json(f"/pd/api/v2/ms/members/{service}", _MICROSERVICES)
        except NotFound:
            return None
        return tuple(Microservice(each.name or each.address, each.address) for each in found or ())

    def microservice_primary(self, service: str) -> str:
        """The address of the primary of `tso` or `scheduling`; empty without one. Raises Unavailable, ApiError."""
        try:
            return self._call.get_json(f"/pd/api/v2/ms/primary/{service}", _TEXT)
        except NotFound:
            # PD is not in microservice mode
            return ""

    def ready(self) -> bool:
        """Whether this one member has loaded its regions; members older than v8.5.2 always have.

        The leader has not while there are none, before the first TiKV (seen with v8.5.2).

        Ask a member, not the Service. Raises Unavailable.
        """
        try:
            self._call.get("/pd/api/v2/ready", also=_NOT_FOUND)
        except ApiError:
            return False
        return True

    def votes(self, timeout: float = TIMEOUT) -> bool:
        """Whether this one member has a leader and reads with the quorum, as its etcd says.

        One that does not tell (404) is taken to. Ask a member, not the Service. Raises Unavailable when it does not
        answer, ApiError.
        """
        answer = self._call.get("/health", also=frozenset({404, 503}), timeout=timeout)
        return answer.status != 503

    def _rules(self, path: str) -> Sequence["_Rule"]:
        """Placement rules; none while they are off, or in a PD that is older than they are."""
        try:
            return self._call.get_json(path, _RULES, longest=_LONGEST_RULES) or ()
        except (Conflict, NotFound):
            return ()

    def _scheduler_names(self) -> Sequence[str]:
        return self._call.get_json(_SCHEDULERS_PATH, _SCHEDULERS) or ()

    def _eviction_ids(self) -> Iterable[int]:
        """The stores in the configuration of the one scheduler for all. Raises NotFound when PD runs none."""
        return self._call.get_json(_EVICTIONS_PATH, _EVICT_CONFIG).ranges or ()

    def _evicting_stores(self) -> frozenset[int] | None:
        """The same, None while PD runs no schedulers."""
        names = self._scheduler_names()
        if not names:
            return None
        # PD 3.x has one scheduler per store; later ones have one for all, whose configuration lists them
        ids = set(_trailing_ids(names))
        if _EVICT not in names:
            return frozenset(ids)
        try:
            return frozenset(ids.union(self._eviction_ids()))
        except NotFound:
            # it ended in between, or the leader did
            return None

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


# lists and objects that Go sends as null when they are empty
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
        space=_space(status),
        maker=_LIVE_READ,
    )


def _space(status: _StoreStatus) -> Space | None:
    """The disk of a store; None before its first heartbeat, or when PD writes a size in a way unknown here."""
    capacity, available, used = map(_bytes, (status.capacity, status.available, status.used_size))
    if not capacity or available is None or used is None:
        return None
    return Space(capacity, available, used)


def _bytes(size: str) -> int | None:
    """The bytes of a size such as `98.6GiB`; None when it is none."""
    found = _SIZE.fullmatch(size)
    return int(float(found["number"]) * _UNITS[found["unit"]]) if found else None


def _trailing_ids(names: Iterable[str]) -> Iterable[int]:
    for name in names:
        tail = name.removeprefix(f"{_EVICT}-")
        if tail != name and tail.isdecimal():
            yield int(tail)
