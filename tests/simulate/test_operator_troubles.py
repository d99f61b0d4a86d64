"""The family *operator*: its plans, and their faults."""

import pytest

from simulate.engine.plan import Foreign, InvalidPlan, World
from simulate.engine.worlds import BESIDE_DM
from simulate.families.generate import generated
from simulate.families.loss_and_edit import SUBJECTS
from simulate.families.operator_troubles import FAMILY

_PLANS = list(FAMILY.plans())


def test_each_cluster_with_permanent_losses_has_40_plans_found_by_their_names() -> None:
    clusters = [plan.cluster for plan in _PLANS]
    lost = {subject.cluster for subject in SUBJECTS.values()} - {BESIDE_DM}
    assert {clusters.count(cluster) for cluster in lost} == {40}
    for plan in _PLANS[::40]:
        assert plan == generated(plan.name)


def test_faults_hit_only_the_operator_and_its_requests() -> None:
    faults = [fault for plan in _PLANS for fault in plan.faults]
    assert not [fault for fault in faults if isinstance(fault, World | Foreign)]
    assert {2, 3, 4} == {len(plan.faults) for plan in _PLANS}
    assert 10 == len({type(fault) for fault in faults})


@pytest.mark.parametrize("rest", ["", "small", "small+", "small+x", "nothing+1"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `CLUSTER\+SEED`"):
        FAMILY.plan(rest)
