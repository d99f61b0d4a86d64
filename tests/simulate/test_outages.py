"""The family *outage*: which plans there are, how long service is away, and the shipped alerts on its metrics."""

from pathlib import Path

import pytest

from simulate.engine import Engine
from simulate.generate import generated
from simulate.outage_judge import WITHIN
from simulate.outages import FAMILY
from simulate.plan import InvalidPlan, Plan
from simulate.run import prepare, run
from tests.monitoring.conftest import required
from tests.monitoring.recording import Alerts, Recording, judged
from tests.operator_world import NAMESPACE

_PLANS = list(FAMILY.plans())
_SCRAPED_EVERY = 15


def test_each_goes_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::10]:
        assert plan == generated(plan.name)


@pytest.mark.parametrize(
    "component", ["pd", "tikv", "tidb", "tiflash", "ticdc", "tiproxy", "pump", "dm-master", "dm-worker"]
)
def test_every_component_loses_one_pod_and_all_in_every_way_in_which_a_pod_does_not_run(component: str) -> None:
    own = f"outage/{component}."
    ways = {each.name.removeprefix(own) for each in _PLANS if each.name.startswith(own)}
    not_running = ("pending", "crashing", "deleted", "lost-node", "disk-full")
    assert {f"{way}.{who}" for way in not_running for who in ("one", "all")} <= ways


@pytest.mark.parametrize("plan", _PLANS, ids=lambda plan: plan.name)
def test_service_is_away_for_longer_than_a_report_may_take(plan: Plan) -> None:
    assert plan.outage is not None
    assert plan.outage.ends - plan.outage.begins > 1.5 * WITHIN


@pytest.mark.parametrize("rest", ["", "pd.pending", "pd.pending.some", "pd.on-fire.all", "nothing.pending.all"])
def test_what_is_no_plan_is_refused(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `COMPONENT\.TROUBLE\.WHO`"):
        FAMILY.plan(rest)


def test_a_plan_of_which_nothing_could_be_seen_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="there is nothing that could be seen"):
        FAMILY.plan("tikv.leaderless.all")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pd.pending.all", "pd.unreachable.all", "tikv.crashing.all", "tidb.deleted.all"])
def test_the_shipped_alert_fires_within_a_minute_and_ends_with_the_outage(name: str, tmp_path: Path) -> None:
    plan = generated(f"outage/{name}")
    assert "" == alert_is_judged(required("promtool"), prepare(plan), plan, tmp_path)


def alert_is_judged(promtool: str, engine: Engine, plan: Plan, directory: Path) -> str:
    """What promtool has against the alert on the outage of a plan, scraped as it runs; empty when it is in time."""
    assert plan.outage is not None
    recording = Recording({"one": engine.operators["operator"].registry}, _SCRAPED_EVERY)

    def scrape() -> None:
        recording.scrape()
        engine.later(_SCRAPED_EVERY, scrape)

    engine.later(0.0, scrape)
    assert () == run(engine, plan).violations

    # one scrape later than the operator may report it
    begun = int((plan.outage.begins + WITHIN) // _SCRAPED_EVERY) + 1
    over = int((plan.outage.ends + 2 * WITHIN) // _SCRAPED_EVERY) + 1
    labels = {"namespace": NAMESPACE, "name": "basic", "severity": "critical", "alertname": "TidbClusterUnavailable"}
    alert = labels | {"component": plan.outage.component, "reason": plan.outage.reasons[0]}
    recording.write(directory / "outage.yaml", [Alerts(begun, [alert]), Alerts(over, [])])
    return judged(promtool, directory / "outage.yaml")
