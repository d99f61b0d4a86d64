"""The family *sidecars*: which plans there are, and what they keep from starting."""

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.engine.worlds import MORTAL, SIDECAR
from simulate.families.generate import generated
from simulate.families.loss_and_edit import CHANGES, CONVERGED, SUBJECTS
from simulate.families.sidecars import FAMILY

_PLANS = list(FAMILY.plans())


def test_there_are_three_plans_of_each_change_of_each_subject_which_go_by_their_names() -> None:
    assert 3 * len(SUBJECTS) * (len(CHANGES) - 1) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)


def test_a_pod_is_made_again_and_the_image_beside_its_server_is_missing_for_so_many_seconds() -> None:
    plan = generated("sidecar/tikv-4.config+90")
    missing, evicted = [fault for fault in plan.faults if isinstance(fault, World)]
    assert ({"image": SIDECAR["image"]}, 90.0) == (missing.arguments, missing.seconds)
    assert {"pod": "default/basic-tikv-1"} == evicted.arguments


def test_only_a_change_that_asks_something_of_a_human_anyway_may_end_so() -> None:
    ends = {name: generated(f"sidecar/{name}+90").ends_in for name in ("tikv-4.config", "tikv-3.scale-in")}
    assert {"tikv-4.config": CONVERGED, "tikv-3.scale-in": (*CONVERGED, "FailedScaleIn")} == ends


@pytest.mark.parametrize("cluster", MORTAL)
def test_each_server_of_the_clusters_whose_losses_are_for_good_has_a_container_beside_it(cluster: str) -> None:
    parts = [part for part in MORTAL[cluster]()["spec"].values() if isinstance(part, dict) and "replicas" in part]
    assert len(parts) >= 3
    assert all([SIDECAR] == part["additionalContainers"] for part in parts)


@pytest.mark.parametrize("rest", ["", "tikv-4.config", "tikv-4.rain+90", "tikv-7.config+90", "tikv-4.config+soon"])
def test_what_is_no_plan_is_refused(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `SUBJECT\.CHANGE\+SECONDS`"):
        FAMILY.plan(rest)
