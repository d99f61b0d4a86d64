"""Two controllers never act for one cluster at a time (I35)."""

from controllers.turns import Turns


def test_I35_only_one_acts_for_a_cluster_and_others_are_free() -> None:
    turns = Turns()
    with turns.taking("ns/a") as first, turns.taking("ns/a") as second, turns.taking("ns/b") as other:
        assert (True, False, True) == (first, second, other)


def test_I35_who_did_not_get_a_turn_does_not_end_that_of_another() -> None:
    turns = Turns()
    with turns.taking("ns/a"):
        with turns.taking("ns/a"):
            pass
        with turns.taking("ns/a") as still:
            assert not still
    with turns.taking("ns/a") as again:
        assert again
