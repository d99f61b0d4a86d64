"""The family *outage*: which plans there are, how long service is away, and the shipped alerts on its metrics."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from simulate.engine.plan import InvalidPlan, Plan
from simulate.families.generate import generated
from simulate.families.outages import FAMILY
from simulate.judge.alerts import misjudged
from simulate.judge.outages import WITHIN
from simulate.run import prepare, run
from tests.monitoring.conftest import required

_PLANS = list(FAMILY.plans())


def test_finds_each_plan_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::10]:
        assert plan == generated(plan.name)


@pytest.mark.parametrize(
    "component", ["pd", "tikv", "tidb", "tiflash", "ticdc", "tiproxy", "pump", "dm-master", "dm-worker"]
)
def test_each_component_loses_one_pod_or_all_pods_in_every_way_of_not_running(component: str) -> None:
    own = f"outage/{component}."
    ways = {each.name.removeprefix(own) for each in _PLANS if each.name.startswith(own)}
    not_running = ("pending", "crashing", "deleted", "lost-node", "disk-full")
    assert {f"{way}.{who}" for way in not_running for who in ("one", "all")} <= ways


@pytest.mark.parametrize("plan", _PLANS, ids=lambda plan: plan.name)
def test_each_outage_lasts_longer_than_the_operator_may_take_to_report_it(plan: Plan) -> None:
    assert plan.outage is not None
    assert plan.outage.ends - plan.outage.begins > 1.5 * WITHIN


@pytest.mark.parametrize("rest", ["", "pd.pending", "pd.pending.some", "pd.on-fire.all", "nothing.pending.all"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `COMPONENT\.TROUBLE\.WHO`"):
        FAMILY.plan(rest)


def test_refuses_a_plan_without_a_visible_outage() -> None:
    with pytest.raises(InvalidPlan, match="there is nothing that could be seen"):
        FAMILY.plan("tikv.leaderless.all")


_ALERTED = ("pd.pending.all", "pd.unreachable.all", "tikv.crashing.all", "tidb.deleted.all", "dm-master.crashing.all")


@pytest.mark.slow
def test_the_shipped_alerts_fire_within_a_minute_and_end_with_the_outage() -> None:
    assert {} == misalerted(f"outage/{each}" for each in _ALERTED)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_shipped_alerts_agree_with_the_conditions_for_a_sample_of_outages() -> None:
    """`make simulate` evaluates the alerts for all plans."""
    assert {} == misalerted(plan.name for plan in _PLANS[::9])


def misalerted(names: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The alerts that promtool evaluates on the outages of plans, in which nothing else is wrong."""
    required("promtool")
    outcomes = [run(prepare(plan), plan) for plan in map(generated, names)]
    assert [] == [each.violations for each in outcomes if each.violations]
    recorded = [each.alerts for each in outcomes if each.alerts]
    assert len(outcomes) == len(recorded)
    return misjudged(recorded)
