"""Region placement: numbers in, numbers out (dataplane-apis.md 15.2)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.dataplane.pd.regions import Place, Rules, schedule

RULES = Rules(regions=30, max_replicas=3, peer_moves=5, leader_moves=10, election=1.0)


def settled(places: list[Place], rules: Rules = RULES) -> list[Place]:
    """The placement when nothing moves any more."""
    for _ in range(500):
        after = schedule(places, rules)
        if after == places:
            return after
        places = after
    raise AssertionError("regions move for ever")


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Place,
            id=st.just(0),
            peers=st.integers(0, 30),
            leaders=st.just(0),
            dead_for=st.none() | st.just(100.0),
            removing=st.booleans(),
            evicting=st.booleans(),
            lost=st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_regions_come_to_rest_and_no_store_leads_what_it_does_not_hold(drawn: list[Place]) -> None:
    places = [
        Place(
            index, place.peers, 0, place.dead_for, place.removing, place.evicting, place.lost and bool(place.dead_for)
        )
        for index, place in enumerate(drawn)
    ]

    after = settled(places)

    assert all(0 <= place.leaders <= place.peers for place in after)
    assert sum(place.leaders for place in after) <= RULES.regions


def test_peers_and_leaders_spread_evenly() -> None:
    after = settled([Place(1, 1, 1), Place(2, 0, 0), Place(3, 0, 0), Place(4, 0, 0)])

    assert 90 == sum(place.peers for place in after)
    assert max(place.peers for place in after) - min(place.peers for place in after) <= 1
    assert max(place.leaders for place in after) - min(place.leaders for place in after) <= 1


def test_an_evicted_store_keeps_its_leaders_when_nobody_can_take_them() -> None:
    alone = Place(1, 30, 30, evicting=True)

    assert 30 == settled([alone], Rules(30, 1, 5, 10, 1.0))[0].leaders


def test_a_dead_store_loses_its_leaders_only_to_a_majority() -> None:
    live = [Place(1, 30, 10), Place(2, 30, 10)]
    dead = Place(3, 30, 10, dead_for=2.0)
    assert 0 == settled([*live, dead])[2].leaders

    two_dead = [Place(1, 30, 10), Place(2, 30, 10, dead_for=2.0), Place(3, 30, 10, dead_for=2.0)]
    assert [10, 10, 10] == [place.leaders for place in settled(two_dead)]


def test_a_removing_store_drains_only_when_others_can_hold_a_full_set() -> None:
    leaving = Place(1, 30, 10, removing=True)
    three = [leaving, Place(2, 30, 10), Place(3, 30, 10)]
    assert 30 == settled(three)[0].peers

    assert 0 == settled([*three, Place(4, 0, 0)])[0].peers
