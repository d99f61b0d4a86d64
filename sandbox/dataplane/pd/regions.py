"""Where regions live, as numbers: peers and leaders per store, moved a few at a time (dataplane-apis.md 15.2).

Pure: a placement in, the next placement out. No keys, no region is an individual.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Place:
    """One store as the scheduler sees it. `dead_for` is seconds without its process, None while it runs."""

    id: int
    peers: int
    leaders: int
    dead_for: float | None = None
    removing: bool = False
    evicting: bool = False
    lost: bool = False
    """Down for longer than max-store-down-time: its peers are made again elsewhere."""
    low_space: bool = False

    @property
    def takes_peers(self) -> bool:
        """Whether peers may move here."""
        return self.dead_for is None and not (self.removing or self.low_space)

    @property
    def takes_leaders(self) -> bool:
        """Whether leaders may move here."""
        return self.dead_for is None and not self.evicting and self.peers > self.leaders


@dataclass(frozen=True, slots=True)
class Rules:
    """What the scheduler may do in one round."""

    regions: int
    max_replicas: int
    peer_moves: int
    leader_moves: int
    election: float


def schedule(places: list[Place], rules: Rules) -> list[Place]:
    """The placement one round later; equal to `places` when there is nothing to move."""
    moved = {place.id: place for place in places}
    _move_peers(moved, rules)
    _elect(moved, rules)
    _move_leaders(moved, rules)
    return [moved[place.id] for place in places]


def _move_peers(places: dict[int, Place], rules: Rules) -> None:
    usable = sum(place.takes_peers for place in places.values())
    budget = rules.peer_moves
    held = sum(place.peers for place in places.values())
    wanted = rules.regions * min(rules.max_replicas, max(usable, 1))
    for _ in range(min(budget, max(wanted - held, 0))):
        _add_peer(places, rules)
    leaving = [place for place in places.values() if (place.removing or place.lost) and place.peers > 0]
    for place in leaving:
        # peers can only leave when enough other stores can hold a full set of replicas
        if usable < rules.max_replicas:
            continue
        for _ in range(min(budget, place.peers)):
            if not _add_peer(places, rules):
                break
            _change(places, place.id, peers=-1)
    if not leaving:
        _spread_peers(places, rules, budget)


def _add_peer(places: dict[int, Place], rules: Rules) -> bool:
    targets = [place for place in places.values() if place.takes_peers and place.peers < rules.regions]
    if not targets:
        return False
    _change(places, min(targets, key=lambda place: (place.peers, place.id)).id, peers=1)
    return True


def _spread_peers(places: dict[int, Place], rules: Rules, budget: int) -> None:
    for _ in range(budget):
        movable = [place for place in places.values() if place.takes_peers]
        if len(movable) < 2:
            return
        most = max(movable, key=lambda place: (place.peers, -place.id))
        least = min(movable, key=lambda place: (place.peers, place.id))
        if most.peers - least.peers < 2 or least.peers >= rules.regions:
            return
        _change(places, most.id, peers=-1)
        _change(places, least.id, peers=1)


def _elect(places: dict[int, Place], rules: Rules) -> None:
    """Regions whose leader died elect another one if a majority of their peers lives."""
    dead = [place for place in places.values() if place.dead_for is not None and place.peers > 0]
    if len(dead) <= (rules.max_replicas - 1) // 2:
        for place in dead:
            if place.dead_for is not None and place.dead_for >= rules.election and place.leaders:
                _change(places, place.id, leaders=-place.leaders)
    for place in list(places.values()):
        if place.leaders > place.peers:
            _change(places, place.id, leaders=place.peers - place.leaders)
    missing = rules.regions - sum(place.leaders for place in places.values())
    for _ in range(missing):
        target = _least_led(places)
        if target is None:
            return
        _change(places, target.id, leaders=1)


def _move_leaders(places: dict[int, Place], rules: Rules) -> None:
    for _ in range(rules.leader_moves):
        source = _to_drain(places)
        target = _least_led(places)
        if source is None or target is None:
            return
        if not source.evicting and source.leaders - target.leaders < 2:
            return
        _change(places, source.id, leaders=-1)
        _change(places, target.id, leaders=1)


def _to_drain(places: dict[int, Place]) -> Place | None:
    live = [place for place in places.values() if place.dead_for is None and place.leaders > 0]
    return max(live, key=lambda place: (place.evicting, place.leaders, -place.id), default=None)


def _least_led(places: dict[int, Place]) -> Place | None:
    targets = [place for place in places.values() if place.takes_leaders]
    return min(targets, key=lambda place: (place.leaders, place.id), default=None)


def _change(places: dict[int, Place], store: int, peers: int = 0, leaders: int = 0) -> None:
    place = places[store]
    places[store] = replace(place, peers=place.peers + peers, leaders=place.leaders + leaders)
