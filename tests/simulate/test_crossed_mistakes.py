"""Plans with a second event during a mistake."""

from simulate.families.crossed_mistakes import FAMILY


def test_each_seed_is_a_distinct_reproducible_plan() -> None:
    plans = list(FAMILY.plans())
    assert len(plans) == len({str((plan.edits, plan.faults)) for plan in plans})
    assert plans[17] == FAMILY.plan("17")


def test_the_user_corrects_a_mistake_with_time_left_to_recover() -> None:
    for plan in FAMILY.plans():
        *_, wrong, right = plan.edits
        assert wrong.spec != right.spec
        assert (wrong.at or 0.0) < (right.at or 0.0) < plan.budget - 600.0
        assert plan.faults


def test_some_clusters_are_created_with_the_mistake() -> None:
    worlds = [plan.world for plan in FAMILY.plans()]
    assert 0.3 < worlds.count("empty") / len(worlds) < 0.6
