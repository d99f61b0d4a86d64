"""Plans in which changes go to and fro."""

from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from simulate.families.flips import FAMILY


def test_each_seed_is_a_distinct_reproducible_plan() -> None:
    plans = list(FAMILY.plans())
    assert len(plans) == len({str(plan.edits) for plan in plans})
    assert plans[17] == FAMILY.plan("17")


def test_the_last_spec_of_each_plan_can_be_reached() -> None:
    for plan in FAMILY.plans():
        spec = CLUSTERS[plan.cluster]()["spec"]
        for edit in plan.edits:
            spec = merged(spec, edit.spec) if not edit.target else spec
        assert not spec.get("paused")
        assert not spec.get("suspendAction")
        assert "missing" not in str(spec)


def test_edits_are_in_order_and_leave_time_to_converge() -> None:
    for plan in FAMILY.plans():
        times = [edit.at for edit in plan.edits]
        assert times == sorted(times, key=lambda at: at or 0.0)
        assert times[-1] is None or times[-1] + 300.0 < plan.budget
