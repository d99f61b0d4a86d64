"""The family *operator*: which plans there are, and what they break."""

import pytest

from simulate.engine.plan import Foreign, InvalidPlan, World
from simulate.engine.worlds import BESIDE_DM
from simulate.families.generate import generated
from simulate.families.loss_and_edit import SUBJECTS
from simulate.families.operator_troubles import FAMILY

_PLANS = list(FAMILY.plans())


def test_there_are_as_many_plans_of_each_cluster_whose_losses_are_for_good_which_go_by_their_names() -> None:
    clusters = [plan.cluster for plan in _PLANS]
    lost = {subject.cluster for subject in SUBJECTS.values()} - {BESIDE_DM}
    assert {clusters.count(cluster) for cluster in lost} == {40}
    for plan in _PLANS[::40]:
        assert plan == generated(plan.name)


def test_only_the_operator_and_its_requests_are_in_trouble() -> None:
    faults = [fault for plan in _PLANS for fault in plan.faults]
    assert not [fault for fault in faults if isinstance(fault, World | Foreign)]
    assert {2, 3, 4} == {len(plan.faults) for plan in _PLANS}
    assert 10 == len({type(fault) for fault in faults})


@pytest.mark.parametrize("rest", ["", "small", "small+", "small+x", "nothing+1"])
def test_what_is_no_plan_is_refused(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `CLUSTER\+SEED`"):
        FAMILY.plan(rest)
