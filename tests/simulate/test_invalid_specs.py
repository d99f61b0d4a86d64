"""Plans in which a spec is not valid for minutes."""

from simulate.engine.plan import Crash
from simulate.families.invalid_specs import FAMILY


def test_each_seed_is_a_distinct_reproducible_plan() -> None:
    plans = list(FAMILY.plans())
    assert len(plans) == len({str((plan.edits, plan.faults)) for plan in plans})
    assert plans[17] == FAMILY.plan("17")


def test_the_user_corrects_the_spec_with_time_left_to_recover() -> None:
    for plan in FAMILY.plans():
        *_, wrong, right = plan.edits
        assert 200.0 == (right.at or 0.0) - (wrong.at or 0.0)
        assert plan.budget - (right.at or 0.0) > 600.0


def test_some_plans_begin_empty_and_some_crash_the_operator() -> None:
    plans = list(FAMILY.plans())
    assert 0.1 < [plan.world for plan in plans].count("empty") / len(plans) < 0.4
    assert 0.4 < sum(any(isinstance(each, Crash) for each in plan.faults) for plan in plans) / len(plans) < 0.7
