"""The placement of regions: peers on named stores, one of which leads, moved a few at a time (dataplane-apis.md 15.2).

Pure: a placement in, the next placement out. No keys.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbox.timings import Timings


@dataclass(frozen=True, slots=True)
class Region:
    """The stores with a peer of the region, and the leader's; None while it has no leader."""

    peers: tuple[int, ...] = ()
    leader: int | None = None

    def has_majority(self, dead: Collection[int]) -> bool:
        """True if more than half of its peers vote while those on the `dead` stores do not."""
        return 2 * sum(peer not in dead for peer in self.peers) > len(self.peers)


@dataclass(frozen=True, slots=True)
class Place:
    """A store as the scheduler sees it. `dead_for` is the seconds without its process, None while it runs."""

    id: int
    dead_for: float | None = None
    removing: bool = False
    evicting: bool = False
    lost: bool = False
    """True after max-store-down-time without its process: its peers are recreated elsewhere."""
    low_space: bool = False
    location: tuple[str, ...] = ()
    """The values of PD's location labels, widest first: a region's peers should share as few as possible."""

    @property
    def takes_peers(self) -> bool:
        """True if peers may move here."""
        return self.dead_for is None and not (self.removing or self.low_space)

    @property
    def takes_leaders(self) -> bool:
        """True if leaders may move here."""
        return self.dead_for is None and not self.evicting

    @property
    def is_left(self) -> bool:
        """True if its peers must move elsewhere."""
        return self.removing or self.lost


@dataclass(frozen=True, slots=True)
class Rules:
    """The scheduler's budget for one round."""

    replicas: int
    peer_moves: int
    leader_moves: int
    election: float


def schedule(regions: Sequence[Region], places: Sequence[Place], rules: Rules) -> list[Region]:
    """The placement one round later; equal to `regions` if nothing needs to move."""
    board = _Board(regions, places)
    _move_peers(board, rules)
    _elect(board, rules)
    _move_leaders(board, rules)
    return board.regions


def peers_on(regions: Iterable[Region]) -> Counter[int]:
    """The number of regions with a peer on a store, by store."""
    return Counter(peer for region in regions for peer in region.peers)


def leaders_on(regions: Iterable[Region]) -> Counter[int]:
    """The number of regions that a store leads, by store."""
    return Counter(region.leader for region in regions if region.leader is not None)


class _Board:
    """A placement under change."""

    def __init__(self, regions: Sequence[Region], places: Sequence[Place]) -> None:
        self.regions = list(regions)
        self.places: Mapping[int, Place] = {place.id: place for place in places}
        self.dead = {place.id for place in places if place.dead_for is not None}
        peers, leaders = peers_on(regions), leaders_on(regions)
        self.peers = {place.id: peers[place.id] for place in places}
        self.leaders = {place.id: leaders[place.id] for place in places}

    def put(self, index: int, peers: tuple[int, ...], leader: int | None) -> None:
        """Replace the placement of a region."""
        before = self.regions[index]
        for counts, gone, come in (
            (self.peers, before.peers, peers),
            (self.leaders, (before.leader,), (leader,)),
        ):
            for step, stores in ((-1, gone), (1, come)):
                for store in stores:
                    if store in counts:
                        counts[store] += step
        self.regions[index] = replace(before, peers=peers, leader=leader)

    def movable(self) -> Iterator[tuple[int, Region]]:
        """The regions that can agree on a change."""
        for index, region in enumerate(self.regions):
            if region.has_majority(self.dead):
                yield index, region

    def target(self, region: Region, instead_of: int | None = None) -> int | None:
        """The store for the region's next peer, or to replace the peer on `instead_of`."""
        free = [place.id for place in self.places.values() if place.takes_peers and place.id not in region.peers]

        def rank(store: int) -> tuple[int, int, int]:
            return self.nearness(region, store, instead_of), self.peers[store], store

        return min(free, key=rank, default=None)

    def nearness(self, region: Region, store: int, instead_of: int | None) -> int:
        """How much of its location a store shares with the region's other peers; 0 without locations."""
        others = (self.places[peer] for peer in region.peers if peer in self.places and peer not in (store, instead_of))
        return sum(_shared(self.places[store].location, other.location) for other in others)

    def successor(self, peers: Collection[int]) -> int | None:
        """The peer that leads next: an evicted one only if no other is alive."""
        live = [peer for peer in peers if peer in self.places and peer not in self.dead]
        return min(live, key=lambda store: (self.places[store].evicting, self.leaders[store], store), default=None)

    def move(self, index: int, source: int, target: int | None) -> None:
        """Replace or remove a peer; if it led, another one leads."""
        region = self.regions[index]
        peers = tuple(peer for peer in region.peers if peer != source) + ((target,) if target is not None else ())
        leader = region.leader if region.leader in peers else self.successor(peers)
        self.put(index, peers, leader)


def _move_peers(board: _Board, rules: Rules) -> None:
    """Create missing peers first, then move or remove surplus ones, then balance."""
    budget = rules.peer_moves
    budget -= _each(board, budget, lambda index, region: _add_missing(board, rules, index, region))
    budget -= _each(board, budget, lambda index, region: _relocate(board, rules, index, region))
    if any(place.location for place in board.places.values()):
        budget -= _each(board, budget, lambda index, region: _separate(board, index, region))
    if not any(board.places[peer].is_left for region in board.regions for peer in region.peers if peer in board.places):
        while budget > 0 and _spread(board):
            budget -= 1


def _each(board: _Board, budget: int, change: Callable[[int, Region], bool]) -> int:
    """The number of changed regions, limited by the budget."""
    done = 0
    for index, region in board.movable():
        if done >= budget:
            break
        done += change(index, region)
    return done


def _add_missing(board: _Board, rules: Rules, index: int, region: Region) -> bool:
    target = board.target(region) if len(region.peers) < rules.replicas else None
    if target is not None:
        board.put(index, (*region.peers, target), region.leader)
    return target is not None


def _relocate(board: _Board, rules: Rules, index: int, region: Region) -> bool:
    leaving = next((peer for peer in region.peers if peer in board.places and board.places[peer].is_left), None)
    if len(region.peers) > rules.replicas:
        # dead peers first, because the rest might have no majority
        dead = next((peer for peer in region.peers if peer in board.dead), None)
        board.move(index, next(peer for peer in (dead, leaving, region.peers[-1]) if peer is not None), None)
        return True
    target = board.target(region, leaving) if leaving is not None else None
    if leaving is None or target is None:
        return False
    board.move(index, leaving, target)
    return True


def _separate(board: _Board, index: int, region: Region) -> bool:
    """Move a peer that shares a location with another peer to a store that shares less, if there is room."""
    near = [(board.nearness(region, peer, None), peer) for peer in region.peers if peer in board.places]
    shared, source = max(near, default=(0, 0))
    target = board.target(region, source) if shared else None
    if target is None or board.nearness(region, target, source) >= shared:
        return False
    board.move(index, source, target)
    return True


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """The number of widest labels that two locations share; each weighs more than all narrower ones."""
    depth = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
    return sum(1 << (len(one) - each) for each in range(depth))


def _spread(board: _Board) -> bool:
    """Move a peer from the fullest store to the emptiest one."""
    usable = [place.id for place in board.places.values() if place.takes_peers]
    if len(usable) < 2:
        return False
    most = max(usable, key=lambda store: (board.peers[store], -store))
    least = min(usable, key=lambda store: (board.peers[store], store))
    if board.peers[most] - board.peers[least] < 2:
        return False
    found = [
        (index, each)
        for index, each in board.movable()
        if most in each.peers
        and least not in each.peers
        and board.nearness(each, least, most) <= board.nearness(each, most, None)
    ]
    # a region that is not led from there needs no new leader
    index = min(found, key=lambda each: (each[1].leader == most, each[0]), default=(None, None))[0]
    if index is None:
        return False
    board.move(index, most, least)
    return True


def _elect(board: _Board, rules: Rules) -> None:
    """Elect leaders for regions whose leader died, if a majority of their peers lives."""
    for index, region in board.movable():
        leader = board.places.get(region.leader) if region.leader is not None else None
        dead_for = leader.dead_for if leader is not None else rules.election
        if dead_for is not None and dead_for >= rules.election:
            board.put(index, region.peers, board.successor(region.peers))


def _move_leaders(board: _Board, rules: Rules) -> None:
    for _ in range(rules.leader_moves):
        if not _move_leader(board):
            return


def _move_leader(board: _Board) -> bool:
    """Move one leader from a store that is evicted, or leads more than another one."""
    live = [place for place in board.places.values() if place.dead_for is None and board.leaders[place.id]]
    for source in sorted(live, key=lambda place: (not place.evicting, -board.leaders[place.id], place.id)):
        most = board.leaders[source.id] - (0 if source.evicting else 2)
        for index, region in board.movable():
            if region.leader != source.id:
                continue
            takers = [peer for peer in region.peers if peer in board.places and board.places[peer].takes_leaders]
            taker = min(takers, key=lambda store: (board.leaders[store], store), default=None)
            if taker is not None and taker != source.id and (source.evicting or board.leaders[taker] <= most):
                board.put(index, region.peers, taker)
                return True
    return False


class Term:
    """The term of a leader, which initially knows less than its predecessor (dataplane-apis.md 15.1, 15.2).

    It loads persisted data: of stores, their last heartbeat as of some minutes ago, and the list of regions. The
    regions then report their leaders one after another. Until all have, PD runs no schedulers. The callers hold the
    data plane's lock.
    """

    def __init__(self, timings: Timings, begun_at: float = float("-inf"), reporting: float = 0.0) -> None:
        """`reporting`: seconds until the leaders of all regions have reported; 0 means the usual."""
        self._loaded_at = begun_at + timings.pd_stores_loaded
        self._begun_at = begun_at
        self._reporting = reporting or timings.pd_regions_reported

    @property
    def prepared_at(self) -> float:
        """The clock time at which PD knows the leaders of all regions and begins to schedule."""
        return self._begun_at + self._reporting

    def is_loading(self, now: float) -> bool:
        """True if the leader has not loaded the stores yet, and knows none."""
        return now < self._loaded_at

    def is_prepared(self, now: float) -> bool:
        """True if the leaders of all regions have reported."""
        return now >= self.prepared_at

    def reported(self, regions: int, now: float) -> int:
        """The number of regions whose leaders have reported; the first ones report first."""
        return regions if self.is_prepared(now) else int(regions * (now - self._begun_at) / self._reporting)
