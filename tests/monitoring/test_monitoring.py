"""The dashboard and the alert rules: sound, and about what the process exposes (informers-workqueue.md 8)."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ports.clock import FakeClock
from tests.controller_manager.test_health import get
from tests.controller_manager.test_manager import manager
from tests.monitoring.scenarios import SCENARIOS

HERE = Path(__file__).parent
MONITORING = HERE.parents[1] / "manifests" / "monitoring"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture
def exposed(clock: FakeClock) -> set[str]:
    """Every series that a controller-manager serves, including series without a value yet."""
    made = manager(clock, "-metrics-addr=127.0.0.1:0")
    made.health.start()
    try:
        _, text = get(made.health, "/metrics")
    finally:
        made.health.stop()
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return {name + suffix for name, kind in types for suffix in SUFFIXES.get(kind, ("",))}


def metrics_of(expression: str) -> set[str]:
    """The metrics that a PromQL expression reads: the words that are neither labels, functions nor operators."""
    noise = (
        r'"[^"]*"',
        r"\{[^}]*\}",
        r"\[[^\]]*\]",
        r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)",
        r"\b(and|or|unless|bool|offset)\b",
    )
    for pattern in noise:
        expression = re.sub(pattern, " ", expression)
    return set(re.findall(r"\b[a-zA-Z_:][\w:]*\b(?!\s*\()", expression))


def alert_rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]


def queries(dashboard: dict[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"].removeprefix("label_values(").rpartition(",")[0]


@pytest.mark.rule("informers-workqueue-8")
def test_finds_the_metrics_in_an_expression() -> None:
    expression = 'sum by (name, le) (rate(a_bucket{x="y_z"}[5m])) / on (job) b_total > 0.5 and time() - c offset 5m'
    assert {"a_bucket", "b_total", "c"} == metrics_of(expression)


@pytest.mark.rule("informers-workqueue-8")
def test_every_metric_of_an_alert_is_exposed(exposed: set[str]) -> None:
    assert {} == {rule["alert"]: unknown for rule in alert_rules() if (unknown := metrics_of(rule["expr"]) - exposed)}


@pytest.mark.rule("informers-workqueue-8")
def test_every_metric_of_the_dashboard_is_exposed(dashboard: dict[str, Any], exposed: set[str]) -> None:
    assert {} == {query: unknown for query in queries(dashboard) if (unknown := metrics_of(query) - exposed)}


@pytest.mark.rule("informers-workqueue-8")
def test_the_dashboard_shows_every_metric_of_the_operator(dashboard: dict[str, Any], exposed: set[str]) -> None:
    def family(name: str) -> str:
        return re.sub(r"_(bucket|sum|count)$", "", name)

    ours = {family(name) for name in exposed if not name.startswith(("process_", "python_"))}
    shown = {family(name) for query in queries(dashboard) for name in metrics_of(query)}
    assert set() == ours - shown


def test_the_panels_of_the_dashboard_do_not_overlap(dashboard: dict[str, Any]) -> None:
    cells = [
        (x, y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len(dashboard["panels"]) == len({panel["id"] for panel in dashboard["panels"]})


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in alert_rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "description"} == rule["annotations"].keys()


def test_the_alert_rules_are_valid(promtool: str) -> None:
    check = run(promtool, "check", "rules", "--lint-fatal", str(MONITORING / "alerts.yaml"))
    assert 0 == check.returncode, check.stdout + check.stderr


@pytest.mark.slow
def test_the_alerts_fire_when_they_should(promtool: str) -> None:
    check = run(promtool, "test", "rules", str(HERE / "alerts_test.yaml"))
    assert 0 == check.returncode, check.stdout + check.stderr


def test_every_alert_has_a_test_in_which_it_fires() -> None:
    cases = yaml.safe_load((HERE / "alerts_test.yaml").read_text(encoding="utf-8"))["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    fired = {check["alertname"] for check in checks if check["exp_alerts"]} | {
        alert for scenario in SCENARIOS for alert in scenario.fires
    }
    assert {rule["alert"] for rule in alert_rules()} == fired


def test_every_metric_of_the_alert_tests_is_exposed(exposed: set[str]) -> None:
    """Else they would prove something about series that no process sends."""
    cases = yaml.safe_load((HERE / "alerts_test.yaml").read_text(encoding="utf-8"))["tests"]
    series = {each["series"] for case in cases for each in case.get("input_series", ())}
    assert set() == {each.partition("{")[0] for each in series} - exposed


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
