"""Regions with peers that are down or pending, as PD lists them, and the stores that their quorums need.

PD answers `/pd/api/v1/regions/check/down-peer` and `pending-peer` with every such region at once; neither takes a
limit. A peer is down when its leader has not heard from it for ten minutes, and pending while it needs a snapshot. A
region whose leader is silent is shown as its leader last reported it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from dataplane.answers import Id, Name, require_uint64

LONGEST_REGIONS = 4 << 20
"""The maximum size of a list of regions in bytes. PD writes about 600 bytes per region, so 7,000 fit."""

REGION_BYTES_PER_VALUE = 8
"""The minimum average size of a value in a list of regions: most are short numbers, and few of them are decoded."""

_REGIONS = 50_000
_PEERS = 100
"""The maximum number of peers of a region; three to seven in practice."""

_VOTERS: tuple[frozenset[str], ...] = (frozenset({"Voter", "DemotingVoter"}), frozenset({"Voter", "IncomingVoter"}))
"""The roles that vote before and after a change of peers. While the change lasts, both groups must agree."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A replica of a region. `role` is Voter, Learner, IncomingVoter or DemotingVoter."""

    id: int
    store: int
    role: str = "Voter"


@dataclass(frozen=True, slots=True)
class Region:
    """A region. `behind` has the ids of its peers that are down or pending."""

    id: int
    peers: tuple[Peer, ...]
    behind: frozenset[int]

    def needs(self, store: int) -> bool:
        """True if the region has a quorum of peers that are not behind, and would lose it without a store."""
        return self._has_quorum() and not self._has_quorum(without=store)

    def stores_behind(self) -> frozenset[int]:
        """The stores with a peer that is behind."""
        return frozenset(peer.store for peer in self.peers if peer.id in self.behind)

    def _has_quorum(self, without: int | None = None) -> bool:
        current = [peer for peer in self.peers if peer.id not in self.behind and peer.store != without]
        return all(
            2 * sum(peer.role in voters for peer in current) > sum(peer.role in voters for peer in self.peers)
            for voters in _VOTERS
        )


class _Peer(msgspec.Struct):
    id: Id = 0
    store_id: Id = 0
    role_name: Name = ""
    is_learner: bool = False

    def __post_init__(self) -> None:
        require_uint64(id=self.id, store_id=self.store_id)


class _Down(msgspec.Struct):
    peer: _Peer


class _Region(msgspec.Struct):
    id: Id = 0
    peers: Annotated[list[_Peer], Meta(max_length=_PEERS)] | None = None
    down_peers: Annotated[list[_Down], Meta(max_length=_PEERS)] | None = None
    pending_peers: Annotated[list[_Peer], Meta(max_length=_PEERS)] | None = None

    def __post_init__(self) -> None:
        require_uint64(id=self.id)


class Regions(msgspec.Struct):
    """PD's answer."""

    regions: Annotated[list[_Region], Meta(max_length=_REGIONS)] | None = None


DECODER = msgspec.json.Decoder(Regions)
_LISTS = ("down-peer", "pending-peer")


def behind(ask: Callable[[str], Regions]) -> tuple[Region, ...]:
    """The regions with a peer that is down or pending, by id. `ask` sends one request."""
    found: Mapping[int, _Region] = {
        region.id: region for name in _LISTS for region in ask(f"/pd/api/v1/regions/check/{name}").regions or ()
    }
    return tuple(_decoded(found[region]) for region in sorted(found))


def _decoded(region: _Region) -> Region:
    down = [each.peer for each in region.down_peers or ()]
    peers = tuple(Peer(peer.id, peer.store_id, _role(peer)) for peer in region.peers or ())
    return Region(region.id, peers, frozenset(peer.id for peer in (*down, *(region.pending_peers or ()))))


def _role(peer: _Peer) -> str:
    """The role of a peer; PD writes no name of it before v5.0."""
    return peer.role_name or ("Learner" if peer.is_learner else "Voter")
