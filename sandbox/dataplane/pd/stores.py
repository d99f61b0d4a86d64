"""The stores PD knows: registration, states, placement (dataplane-apis.md 3.3, 15.2).

StoreRefused      a TiKV may not register or PD will not carry out what was asked
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from kube.objects import Json
from sandbox.dataplane.pd.config import Config
from sandbox.dataplane.pd.learners import Learners, learners_on, place
from sandbox.dataplane.pd.placement import Placement
from sandbox.dataplane.pd.regions import Place, Region, Rules, Term, leaders_on, peers_on, schedule
from sandbox.timings import Timings

FIRST_STORE = 1
_GIB = 2**30
_REGIONS_WITH_TIDB = 30
_SERVING_AT_ONCE_BELOW = 100
_MISSED = 1.5
"""Heartbeat intervals after which a store counts as silent."""
_ROUNDING = 1e-6


class StoreRefused(Exception):
    """Raised if PD refuses. `status` is the HTTP status, the message PD's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class NodeState(IntEnum):
    """The phase of a store's life."""

    PREPARING = 0
    SERVING = 1
    REMOVING = 2
    REMOVED = 3


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The time of a store's heartbeat, by the world's clock and the wall clock, in seconds."""

    at: float
    wall: float


@dataclass(slots=True)
class Store:
    """One store. Clock times are `*_at`; `started` is in wall seconds."""

    id: int
    address: str
    version: str
    started: float
    last: Heartbeat
    """The last heartbeat."""
    known: Heartbeat = field(init=False)
    """The last heartbeat that PD's leader knows."""
    saved: Heartbeat = field(init=False)
    """The last heartbeat that PD has persisted for its next leader."""
    node_state: NodeState = NodeState.SERVING
    status_address: str = "0.0.0.0:20180"
    labels: dict[str, str] = field(default_factory=dict)
    capacity: int = 100 * _GIB
    peers: int = 0
    leaders: int = 0
    died_at: float | None = None
    """When its process ended: unknown to PD, known to the regions."""
    silent: bool = False
    """True if a heartbeat is overdue, so that its process counts as dead."""
    low_space: bool = False

    def __post_init__(self) -> None:
        self.known = self.saved = self.last

    @property
    def is_tiflash(self) -> bool:
        """True if it has only learners."""
        return self.labels.get("engine") == "tiflash"

    @property
    def dead_since(self) -> float | None:
        """Since when its peers do not vote; None while they do."""
        if self.died_at is not None:
            return self.died_at
        return self.last.at if self.silent else None

    @property
    def proto_state(self) -> int:
        """Up 0, Offline 1, Tombstone 2."""
        return {NodeState.REMOVING: 1, NodeState.REMOVED: 2}.get(self.node_state, 0)


@dataclass(frozen=True, slots=True)
class _Fallen:
    """A leader whose process ended: another one is elected even if it is back before."""

    store: int
    at: float


class Stores:
    """All stores of one cluster and its regions."""

    def __init__(self, timings: Timings, config: Config, placement: Placement) -> None:
        self._timings = timings
        self._config = config
        self._placement = placement
        self._by_id: dict[int, Store] = {}
        self._next_id = FIRST_STORE
        self._scheduled_at = 0.0
        self._checked_at = 0.0
        self._credit = 0.0
        self._heard_from = 0.0
        self._term = Term(timings)
        self.cluster_version = "0.0.0"
        """The lowest version among stores that are not removed; never decreases."""
        self.regions: list[Region] = []
        self.learners: Learners = {}
        self.evicting: set[int] = set()
        self.peer_moves = timings.peer_moves
        """Peers that a store receives per second."""
        self.changed: Callable[[], None] = lambda: None
        """Called when `tick` may have work before `quiet_until`."""
        self.pending: Mapping[int, Collection[int]] = {}
        """A fault: by index of a region, the stores whose peers wait for a snapshot and do not vote."""
        self._frozen = False
        self.reporting = 0.0
        """A fault: seconds until regions have reported to a new leader; 0 means the usual."""
        self._fallen: dict[int, _Fallen] = {}
        """By index of a region, its last leader whose process has ended."""

    @property
    def frozen(self) -> bool:
        """A fault: regions do not move."""
        return self._frozen

    @frozen.setter
    def frozen(self, frozen: bool) -> None:
        self._frozen = frozen
        self.changed()

    @property
    def bootstrapped(self) -> bool:
        """True if a TiKV has ever registered."""
        return bool(self.regions)

    def is_loading(self, now: float) -> bool:
        """True if a new leader has not loaded the stores yet: it reports the cluster as not bootstrapped."""
        return self._term.is_loading(now)

    def is_prepared(self, now: float) -> bool:
        """True if a new leader knows all regions and has its schedulers."""
        return self._term.is_prepared(now)

    def reported_leaders(self, store: Store, now: float) -> int:
        """The number of regions that a store leads, as far as reported to PD's leader."""
        if self._term.is_prepared(now):
            return store.leaders
        return leaders_on(self.regions[: self.reported_regions(now)])[store.id]

    def reported_regions(self, now: float) -> int:
        """The number of regions whose leaders have reported to PD's leader; the first ones report first."""
        return self._term.reported(len(self.regions), now)

    def all(self) -> list[Store]:
        """Every store PD remembers, by id."""
        return [self._by_id[each] for each in sorted(self._by_id)]

    def get(self, store: int) -> Store:
        """One store. Raises StoreRefused 404."""
        if store not in self._by_id:
            raise StoreRefused(404, f"[PD:core:ErrStoreNotFound]store {store} not found")
        return self._by_id[store]

    def resume(self, stores: Iterable[Store], regions: Iterable[Region]) -> None:
        """Take over the stores and regions of a cluster that has existed before."""
        self._by_id = {store.id: store for store in stores}
        self.regions = list(regions)
        self._next_id = max(self._by_id, default=FIRST_STORE) + 1
        self._count()
        self._raise_version()

    def allocate(self) -> int:
        """Allocate an id; the first store bootstraps the cluster, and its region takes the next two ids."""
        allocated = self._next_id
        self._next_id += 1 if self._by_id or allocated != FIRST_STORE else 3
        return allocated

    def new_term(self, now: float) -> None:
        """After a leader change, ids continue at the next thousand, and no store counts as silent before it could
        report.

        Heartbeats since the last persisted ones are lost.
        """
        self._heard_from = now
        if not self._by_id:
            return
        self._next_id = (self._next_id // 1000 + 1) * 1000 + 1
        self._term = Term(self._timings, now, self.reporting)
        for store in self._by_id.values():
            store.known = store.saved
        self.changed()

    def register(self, store: Store, now: float) -> Store:
        """Add a new or restarted store. Raises StoreRefused for a taken address or a removed store."""
        known = self._by_id.get(store.id)
        if known is not None and known.node_state is NodeState.REMOVED:
            raise StoreRefused(400, f"[PD:core:ErrStoreRemoved]store {store.id} is tombstone")
        for other in self._by_id.values():
            if other.id != store.id and other.address == store.address and other.node_state is not NodeState.REMOVED:
                raise StoreRefused(
                    400,
                    f"duplicated store address: id:{store.id} address:{store.address}, already registered by "
                    f"id:{other.id}",
                )
        if _release(store.version) < _release(self.cluster_version):
            message = f"version should compatible with version  {self.cluster_version}, got {store.version}"
            raise StoreRefused(400, message)
        if store.is_tiflash and not self._placement.is_enabled:
            raise StoreRefused(400, "[PD:placement:ErrPlacementDisabled]placement rules is disabled")
        if known is None:
            if not self.bootstrapped:
                self.regions = [Region((store.id,), store.id)]
            serves = len(self.regions) < _SERVING_AT_ONCE_BELOW
            store.node_state = NodeState.SERVING if serves else NodeState.PREPARING
            self._by_id[store.id] = store
            known = store
            self._count()
        known.version, known.started, known.labels = store.version, store.started, known.labels | store.labels
        known.address, known.status_address = store.address, store.status_address
        known.died_at = None
        self._raise_version()
        self._beat(known, store.last)
        known.saved = store.last
        self._schedule_soon(now)
        return known

    def heartbeat(self, store: int, beat: Heartbeat) -> None:
        """Record the heartbeat of a live store. Raises StoreRefused if it was removed."""
        known = self.get(store)
        if known.node_state is NodeState.REMOVED:
            raise StoreRefused(400, f"store {store} is tombstone")
        self._beat(known, beat)

    def died(self, store: int, now: float) -> None:
        """Record the end of the store's process."""
        if store in self._by_id:
            self._by_id[store].died_at = now
            led = (at for at, region in enumerate(self.regions) if region.leader == store)
            self._fallen.update(dict.fromkeys(led, _Fallen(store, now)))
            self._schedule_soon(now)

    def grow(self, now: float) -> None:
        """Create the regions of TiDB's tables."""
        self.split(_REGIONS_WITH_TIDB, now)

    def split(self, regions: int, now: float) -> None:
        """Split into `regions` regions; new ones are placed like the first."""
        self.regions += self.regions[:1] * (regions - len(self.regions))
        self._count()
        self._schedule_soon(now)

    def remove(self, store: int, now: float) -> None:
        """Take a store offline (DELETE). Raises StoreRefused."""
        target = self.get(store)
        if target.node_state is NodeState.REMOVED:
            raise StoreRefused(410, f"[PD:core:ErrStoreRemoved]store {store} has been removed")
        if target.node_state is NodeState.REMOVING:
            return
        up = sum(each.proto_state == 0 for each in self._by_id.values())
        need = self._config.max_replicas
        if up - 1 < need and not target.is_tiflash:
            raise StoreRefused(
                400,
                f"[PD:core:ErrStoresNotEnough]can not remove store {store} since the number of up stores would be "
                f"{up - 1} while need {need}",
            )
        stores = [each for each in self._by_id.values() if each is not target and each.proto_state == 0]
        if not target.is_tiflash and all(each.id in self.evicting for each in stores):
            raise StoreRefused(
                400,
                f"[PD:core:ErrNoStoreForRegionLeader]can not remove store {store} since there are no extra up store to "
                "store the leader",
            )
        target.node_state = NodeState.REMOVING
        self._schedule_soon(now)

    def reschedule(self, now: float) -> None:
        """Move regions again, because their placement rules have changed."""
        self._schedule_soon(now)

    def restore(self, store: int, now: float) -> None:
        """Undo a removal (state=Up). Raises StoreRefused."""
        target = self.get(store)
        if target.node_state is NodeState.REMOVED:
            raise StoreRefused(410, f"[PD:core:ErrStoreRemoved]store {store} has been removed")
        if target.node_state is NodeState.REMOVING:
            target.node_state = NodeState.SERVING
        self._schedule_soon(now)

    def remove_tombstones(self) -> None:
        """Forget Tombstone stores."""
        self._by_id = {store.id: store for store in self._by_id.values() if store.node_state is not NodeState.REMOVED}

    def evict(self, store: int, now: float) -> None:
        """Begin to move the store's leaders away. Raises StoreRefused for an unknown store."""
        self.get(store)
        self.evicting.add(store)
        self._schedule_soon(now)

    def stop_evicting(self, store: int, now: float) -> bool:
        """Allow leaders again; True if the store was being evicted."""
        found = store in self.evicting
        self.evicting.discard(store)
        self._schedule_soon(now)
        return found

    def state_name(self, store: Store, now: float) -> str:
        """Up, Disconnected, Down, Offline or Tombstone, as known to PD's leader."""
        return self._name(store, now - store.known.at)

    def true_state(self, store: Store, now: float) -> str:
        """The state, with knowledge of all heartbeats."""
        return self._name(store, now - store.last.at)

    def _name(self, store: Store, silence: float) -> str:
        if store.node_state is NodeState.REMOVED:
            return "Tombstone"
        if store.node_state is NodeState.REMOVING:
            return "Offline"
        if silence > self._config.max_store_down_time:
            return "Down"
        return "Disconnected" if silence > self._timings.store_disconnected else "Up"

    def majority_alive(self) -> bool:
        """True if all regions are writable: more than half of the peers of each have a live process."""
        dead = {store.id for store in self._by_id.values() if store.dead_since is not None}
        return self.bootstrapped and all(
            region.has_majority(dead.union(self.pending.get(index, ()))) for index, region in enumerate(self.regions)
        )

    def down(self, now: float) -> frozenset[int]:
        """The stores whose peers the leaders of regions report as down."""
        limit = self._timings.peer_down
        return frozenset(
            store.id
            for store in self._by_id.values()
            if store.dead_since is not None and now - store.dead_since > limit
        )

    def is_led(self, region: int) -> bool:
        """True if a region has a leader with a live process, so that it can be read and written."""
        leader = self._by_id.get(self.regions[region].leader or 0) if region < len(self.regions) else None
        return leader is not None and leader.dead_since is None

    def serving(self, region: int, now: float) -> Store | None:
        """The store that reads and writes a region for TiDB; None while it has no leader or no majority.

        Raft decides this, not PD: a region elects a leader while PD is silent, and `raft_election` after the old one
        ended, even if that one has restarted.
        """
        if region >= len(self.regions):
            return None
        place = self.regions[region]
        dead = {store.id for store in self._by_id.values() if store.dead_since is not None}
        dead.update(self.pending.get(region, ()))
        if not place.has_majority(dead):
            return None
        ended = self._leader_ended_at(region)
        if ended is not None and now < ended + self._timings.raft_election:
            return None
        live = [peer for peer in place.peers if peer not in dead and peer in self._by_id]
        return self._by_id[place.leader if place.leader in live else live[0]] if live else None

    def _leader_ended_at(self, region: int) -> float | None:
        """When the process of a region's leader ended; None if it has not, or before it became the leader."""
        leader, fallen = self.regions[region].leader, self._fallen.get(region)
        if fallen is not None and fallen.store == leader:
            return fallen.at
        store = self._by_id.get(leader or 0)
        return store.dead_since if store is not None else None

    def tick(self, now: float) -> float | None:
        """Move regions and finish removals; return when to run again, or None while nothing moves."""
        if not self.bootstrapped or self.frozen:
            return None
        if not self._term.is_prepared(now):
            return self._term.prepared_at
        self._listen(now)
        if now >= self._scheduled_at:
            self._schedule(now)
        if now >= self._checked_at:
            self._check(now)
        due = [time for time in (self._scheduled_at, self._checked_at) if time != float("inf")]
        return min(due, default=None)

    def quiet_until(self, now: float) -> float:
        """The clock time before which a tick has no effect, unless `changed` is called.

        A tick's result may be later: a store that falls silent schedules no work, but is noticed by any tick.
        """
        if not self.bootstrapped or self.frozen:
            return float("inf")
        if not self._term.is_prepared(now):
            return self._term.prepared_at
        heard = (max(store.last.at, self._heard_from) for store in self._by_id.values() if not store.silent)
        silent_at = min(heard, default=float("inf")) + _MISSED * self._timings.store_heartbeat
        # a sum of floats may be slightly late
        return min(self._scheduled_at, self._checked_at, silent_at - _ROUNDING)

    def _listen(self, now: float) -> None:
        """Notice stores that have fallen silent or report again."""
        for store in self._by_id.values():
            silent = now - max(store.last.at, self._heard_from) > _MISSED * self._timings.store_heartbeat
            if silent != store.silent:
                store.silent = silent
                self._schedule_soon(now)

    def _schedule(self, now: float) -> None:
        tick = self._timings.region_tick
        there = [store for store in self._by_id.values() if store.node_state != NodeState.REMOVED]
        places = [self._place(store, now) for store in there if not store.is_tiflash]
        of_tiflash = [self._place(store, now) for store in there if store.is_tiflash]
        self._credit += self.peer_moves * tick * sum(place.takes_peers for place in (*places, *of_tiflash))
        rules = Rules(
            replicas=self._placement.replicas,
            peer_moves=int(self._credit),
            leader_moves=max(1, int(self._timings.leader_moves * tick)),
            election=self._timings.raft_election,
        )

        def placed(moves: int) -> tuple[list[Region], Learners]:
            voters = schedule(self.regions, places, replace(rules, peer_moves=moves))
            return voters, place(self.learners, self._placement.of_tiflash, of_tiflash, moves)

        before, after = (self.regions, self.learners), placed(rules.peer_moves)
        # if the budget must be saved up for moves, moves are still to come
        waiting = after == before and placed(1) != before
        self._credit = min(self._credit, 1.0) if waiting else self._credit % 1.0
        self.regions, self.learners = after
        self._count()
        if after != before or waiting:
            self._scheduled_at = now + tick
            self._checked_at = min(self._checked_at, now + self._timings.store_check)
            return
        self._scheduled_at = min((time for time in self._future() if time > now), default=float("inf"))

    def _count(self) -> None:
        peers, leaders = peers_on(self.regions), leaders_on(self.regions)
        for store in self._by_id.values():
            store.peers = peers[store.id] + learners_on(self.learners, store.id)
            store.leaders = leaders[store.id]

    def _future(self) -> list[float]:
        """The times at which the silence of dead stores takes effect."""
        dead = [store for store in self._by_id.values() if store.dead_since is not None]
        elections = [store.dead_since + self._timings.raft_election for store in dead if store.dead_since is not None]
        # strictly later: a store is Down after a silence longer than max-store-down-time
        downs = [store.last.at + self._config.max_store_down_time + self._timings.region_tick for store in dead]
        return [*elections, *downs]

    def _check(self, now: float) -> None:
        waiting = False
        for store in self._by_id.values():
            if store.node_state is NodeState.REMOVING:
                if store.peers == 0:
                    store.node_state = NodeState.REMOVED
                else:
                    waiting = True
            if store.node_state is NodeState.PREPARING:
                store.node_state = NodeState.SERVING
        self._checked_at = now + self._timings.store_check if waiting else float("inf")

    def _raise_version(self) -> None:
        versions = [store.version for store in self._by_id.values() if store.node_state is not NodeState.REMOVED]
        lowest = min(versions, key=_parts, default=self.cluster_version)
        self.cluster_version = max(self.cluster_version, lowest, key=_parts)

    def _place(self, store: Store, now: float) -> Place:
        return Place(
            id=store.id,
            dead_for=None if store.dead_since is None else now - store.dead_since,
            removing=store.node_state is NodeState.REMOVING,
            evicting=store.id in self.evicting,
            lost=self.true_state(store, now) == "Down",
            low_space=store.low_space,
            location=tuple(store.labels.get(label, "") for label in self._config.location_labels),
        )

    def _beat(self, store: Store, beat: Heartbeat) -> None:
        store.last = store.known = beat
        if beat.at - store.saved.at >= self._timings.store_saved:
            store.saved = beat
        if store.silent:
            self.changed()

    def _schedule_soon(self, now: float) -> None:
        self._scheduled_at = now
        self._checked_at = min(self._checked_at, now + self._timings.store_check)
        self.changed()


def _parts(version: str) -> list[int]:
    """The numbers of a version; one without numbers, e.g. `nightly`, is newer than all."""
    return [int(part) for part in re.findall(r"\d+", version)] or [2**31]


def _release(version: str) -> list[int]:
    return _parts(version)[:2]


def is_reserved(label: str) -> bool:
    """True if the label's key is reserved for PD."""
    return label == "engine"


def store_labels(store: Store) -> list[Json]:
    """Labels in PD's JSON form."""
    return [{"key": key, "value": value} for key, value in sorted(store.labels.items())]
