"""The family *sidecars*: its plans, and the containers that they keep from starting."""

import pytest

from simulate.engine.plan import InvalidPlan, World
from simulate.engine.worlds import MORTAL, SIDECAR
from simulate.families.generate import generated
from simulate.families.loss_and_edit import CHANGES, CONVERGED, SUBJECTS
from simulate.families.sidecars import FAMILY

_PLANS = list(FAMILY.plans())


def test_each_change_of_each_subject_has_three_plans_found_by_their_names() -> None:
    assert 3 * len(SUBJECTS) * (len(CHANGES) - 1) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)


def test_an_evicted_pod_returns_while_the_image_of_its_sidecar_is_missing() -> None:
    plan = generated("sidecar/tikv-4.config+90")
    missing, evicted = [fault for fault in plan.faults if isinstance(fault, World)]
    assert ({"image": SIDECAR["image"]}, 90.0) == (missing.arguments, missing.seconds)
    assert {"pod": "default/basic-tikv-1"} == evicted.arguments


def test_a_plan_may_wait_for_the_user_only_if_its_change_does_so_anyway() -> None:
    ends = {name: generated(f"sidecar/{name}+90").ends_in for name in ("tikv-4.config", "tikv-3.scale-in")}
    assert {"tikv-4.config": CONVERGED, "tikv-3.scale-in": (*CONVERGED, "FailedScaleIn")} == ends


@pytest.mark.parametrize("cluster", MORTAL)
def test_each_server_of_a_cluster_with_permanent_losses_has_a_sidecar(cluster: str) -> None:
    parts = [part for part in MORTAL[cluster]()["spec"].values() if isinstance(part, dict) and "replicas" in part]
    assert len(parts) >= 3
    assert all([SIDECAR] == part["additionalContainers"] for part in parts)


@pytest.mark.parametrize("rest", ["", "tikv-4.config", "tikv-4.rain+90", "tikv-7.config+90", "tikv-4.config+soon"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `SUBJECT\.CHANGE\+SECONDS`"):
        FAMILY.plan(rest)
