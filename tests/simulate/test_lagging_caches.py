"""The family *lag*: which plans there are, and which cache is behind when."""

from itertools import islice

import pytest

from kube.resources import LEASES, PODS
from simulate.engine.plan import Hidden, InvalidPlan, Stale
from simulate.families.generate import generated
from simulate.families.lagging_caches import CACHED, FAMILY
from simulate.families.workloads import WORKLOADS
from simulate.run import prepare


def test_finds_each_plan_by_its_name() -> None:
    for plan in islice(FAMILY.plans(), 0, None, 97):
        assert plan == generated(plan.name)


@pytest.mark.parametrize(("how", "kind"), [("stale", Stale), ("hidden", Hidden)])
def test_adds_one_lagging_cache_to_the_base_plan(how: str, kind: type[Stale | Hidden]) -> None:
    plan, base = generated(f"lag/{how}.pods+45@6/tikv-upgrade"), WORKLOADS["tikv-upgrade"]
    assert (kind(at=6.0, caches=(str(PODS),), seconds=45.0),) == plan.faults
    assert (base.edits, base.given) == (plan.edits, plan.given)


@pytest.mark.slow
def test_every_cache_of_the_operator_lags_in_some_plan() -> None:
    """Leases report only other operators."""
    engine = prepare(WORKLOADS["bring-up-tiny"])
    engine.start_operator()
    assert {*CACHED.values()} == {*engine.operators["operator"].caches} - {LEASES}


@pytest.mark.parametrize(
    "rest", ["", "stale.pods+45/tikv-upgrade", "stale.leases+5@1/tikv-upgrade", "stale.pods+5@1/nothing"]
)
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match="is no "):
        FAMILY.plan(rest)
