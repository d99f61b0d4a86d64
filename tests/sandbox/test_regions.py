"""Region placement: regions and stores in, regions out (dataplane-apis.md 15.2)."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sandbox.dataplane.pd.regions import Place, Region, Rules, leaders_on, peers_on, schedule

RULES = Rules(replicas=3, peer_moves=5, leader_moves=10, election=1.0)

THREE = [Region((1, 2, 3), 1 + index % 3) for index in range(30)]
"""Thirty regions on three stores, each leading ten."""


def settled(regions: Sequence[Region], places: Sequence[Place], rules: Rules = RULES) -> list[Region]:
    """The placement once nothing moves."""
    before = list(regions)
    for _ in range(500):
        after = schedule(before, places, rules)
        if after == before:
            return after
        before = after
    raise AssertionError("regions move for ever")


def peers(regions: Sequence[Region], *stores: int) -> list[int]:
    """The number of regions on each store."""
    return [peers_on(regions)[store] for store in stores]


def leaders(regions: Sequence[Region], *stores: int) -> list[int]:
    """The number of regions that each store leads."""
    return [leaders_on(regions)[store] for store in stores]


_STORES = st.integers(0, 5)


@given(
    st.lists(st.lists(_STORES, min_size=1, max_size=5, unique=True), min_size=1, max_size=20),
    st.lists(
        st.builds(
            Place,
            id=st.just(0),
            dead_for=st.none() | st.just(100.0),
            removing=st.booleans(),
            evicting=st.booleans(),
            lost=st.booleans(),
            location=st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")),
        ),
        min_size=6,
        max_size=6,
    ),
)
def test_regions_settle_and_no_store_leads_a_region_without_a_peer(where: list[list[int]], drawn: list[Place]) -> None:
    places = [replace(place, id=index, lost=place.lost and bool(place.dead_for)) for index, place in enumerate(drawn)]
    before = [Region(tuple(stores)) for stores in where]
    dead = {place.id for place in places if place.dead_for is not None}

    after = settled(before, places)

    assert all(region.leader is None or region.leader in region.peers for region in after)
    assert all(len(set(region.peers)) == len(region.peers) for region in after)
    for was, region in zip(before, after, strict=True):
        assert was == region or (was.has_majority(dead) and region.has_majority(dead))


def test_no_region_has_two_peers_in_a_zone_if_zones_are_known() -> None:
    six = [Place(store, location=(f"zone-{store % 3}",)) for store in range(6)]
    after = settled([Region((0, 3, 1), 0)] * 30, six)

    assert all(3 == len({store % 3 for store in region.peers}) for region in after)
    assert 90 == sum(peers(after, *range(6)))
    # the regions of a lost zone are copied into the remaining ones, although peers then share a zone
    lost = [replace(place, dead_for=100.0, lost=True) if place.id % 3 == 0 else place for place in six]
    assert all(region.has_majority({0, 3}) for region in after)
    assert [0, 0] == peers(settled(after, lost), 0, 3)


def test_peers_and_leaders_spread_evenly() -> None:
    after = settled([Region((1,), 1)] * 30, [Place(1), Place(2), Place(3), Place(4)])
    held, led = peers(after, 1, 2, 3, 4), leaders(after, 1, 2, 3, 4)

    assert (90, 30) == (sum(held), sum(led))
    assert max(held) - min(held) <= 1
    assert max(led) - min(led) <= 1


def test_an_evicted_store_keeps_leaders_that_no_other_store_can_take() -> None:
    alone = settled([Region((1,), 1)] * 30, [Place(1, evicting=True)])

    assert [30] == leaders(alone, 1)


def test_a_dead_store_loses_its_leaders_only_to_a_majority() -> None:
    assert 0 == leaders(settled(THREE, [Place(1), Place(2), Place(3, dead_for=2.0)]), 3)[0]

    two_dead = [Place(1), Place(2, dead_for=2.0), Place(3, dead_for=2.0)]
    assert [10, 10, 10] == leaders(settled(THREE, two_dead), 1, 2, 3)


def test_a_removing_store_drains_only_when_others_can_hold_a_full_set() -> None:
    three = [Place(1, removing=True), Place(2), Place(3)]
    assert [30, 30, 30] == peers(settled(THREE, three), 1, 2, 3)

    assert [0, 30, 30, 30] == peers(settled(THREE, [*three, Place(4)]), 1, 2, 3, 4)


def test_the_regions_of_a_lost_store_are_copied_one_by_one() -> None:
    places = [Place(1, dead_for=100.0, lost=True), Place(2), Place(3), Place(4)]

    after = schedule(THREE, places, RULES)

    assert [25, 5] == peers(after, 1, 4)
    assert [0, 30, 30, 30] == peers(settled(after, places), 1, 2, 3, 4)


def test_a_region_without_a_majority_is_neither_copied_nor_moved() -> None:
    places = [Place(1, dead_for=100.0, lost=True), Place(2, dead_for=100.0, lost=True), Place(3), Place(4), Place(5)]

    assert THREE == settled(THREE, places)


def test_surplus_replicas_are_removed() -> None:
    after = settled(THREE, [Place(1), Place(2), Place(3)], Rules(1, 5, 10, 1.0))

    assert 30 == sum(peers(after, 1, 2, 3))
    assert all((region.leader,) == region.peers for region in after)
