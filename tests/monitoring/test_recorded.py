"""Alerts on clusters fire, and only those that should: series of the operator in the sandbox, judged by promtool."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ports.clock import FakeClock
from simulate.judge.alerts import RULES
from tests.monitoring.recording import Alerts, Recording, judged
from tests.monitoring.scenarios import QUICKLY, SCENARIOS, Scenario, cluster, second_operator
from tests.operator_world import NAMESPACE, OperatorWorld

pytestmark = pytest.mark.slow


def severity_and_labels(alert: str) -> tuple[str, set[str]]:
    """The severity, and the labels that the texts of an alert read."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    (rule,) = [rule for group in groups for rule in group["rules"] if rule["alert"] == alert]
    texts: dict[str, Any] = rule["annotations"]
    return rule["labels"]["severity"], set(re.findall(r"\$labels\.(\w+)", " ".join(texts.values())))


_LONG = 40
"""Minutes from which on a scenario belongs to `make test-thorough`."""


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=each.name.replace(" ", "-"), marks=pytest.mark.thorough if each.minutes >= _LONG else ())
        for each in SCENARIOS
    ],
)
def test_these_alerts_fire_and_no_others(scenario: Scenario, clock: FakeClock, promtool: str, tmp_path: Path) -> None:
    world = OperatorWorld(clock=clock, settings=QUICKLY)
    try:
        record(world, scenario, tmp_path / "recorded.yaml")
    finally:
        world.stop()
    assert "" == judged(promtool, tmp_path / "recorded.yaml")


def record(world: OperatorWorld, scenario: Scenario, path: Path) -> None:
    """Run the events, scrape every minute, and record the alerts that should fire."""
    world.apply(cluster(scenario.spec))
    if not scenario.spec.get("tidb", {}).get("tlsClient") and "tlsCluster" not in scenario.spec:
        world.run_until_ready()
    registries = {"one": world.operator.registry}
    if scenario.processes == 2:
        second = second_operator(world)
        second.work()
        registries["two"] = second.registry
    recording = Recording(registries)
    scenario.happens(world)
    for _ in range(scenario.minutes):
        world.run(60.0)
        recording.scrape()
    firing = []
    for alert, labels in scenario.fires.items():
        severity, read = severity_and_labels(alert)
        of_cluster = {"namespace": NAMESPACE, "name": "basic", **labels}
        assert set() == read - of_cluster.keys(), alert
        firing.append({"alertname": alert, "severity": severity} | of_cluster)
    recording.write(path, [Alerts(recording.scrapes - 1, firing)])
