"""Plans in which changes go to and fro."""

from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from simulate.families.flips import FAMILY


def test_each_seed_is_a_plan_of_its_own_and_always_the_same() -> None:
    plans = list(FAMILY.plans())
    assert len(plans) == len({str(plan.edits) for plan in plans})
    assert plans[17] == FAMILY.plan("17")


def test_users_end_with_what_a_cluster_can_be() -> None:
    for plan in FAMILY.plans():
        spec = CLUSTERS[plan.cluster]()["spec"]
        for edit in plan.edits:
            spec = merged(spec, edit.spec) if not edit.target else spec
        assert not spec.get("paused")
        assert not spec.get("suspendAction")
        assert "missing" not in str(spec)


def test_edits_are_in_order_and_leave_time_to_come_to_rest() -> None:
    for plan in FAMILY.plans():
        times = [edit.at for edit in plan.edits]
        assert times == sorted(times, key=lambda at: at or 0.0)
        assert times[-1] is None or times[-1] + 300.0 < plan.budget
