"""The checks can fail: reports that hide an outage, each with its own defect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import cli.doctor.causes.availability
import cli.tidb.status.page
import cli.tidb.status.reporting
import controllers.cluster_conditions
import controllers.cluster_samples
import simulate.judge.surfaces
from controllers.conditions import with_condition
from simulate.families.generate import generated
from simulate.judge.alerts import RULES
from tests.simulate.planting import broken
from tests.simulate.test_outages import misalerted

pytestmark = [pytest.mark.slow, pytest.mark.planted]

Plant = Callable[[pytest.MonkeyPatch], object]


def _nothing(*_: Any, **__: Any) -> Any:
    return None


def _stale_shown_as_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.tidb.status.reporting, "_last_seen", _nothing)


def _member_of_a_pending_pod_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.tidb.status.reporting, "_down", lambda member: member)
    monkeypatch.setattr(cli.tidb.status.reporting, "_unknown", lambda member: member)


def _unknown_in_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.tidb.status.page, "UNDER_WAY", "green")


def _silent_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate.judge.surfaces, "diagnose", lambda *_: [])


def _silent_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers.cluster_samples, "REASONS", frozenset())


def _silent_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers.cluster_conditions, "_record", _nothing)


def _time_of_another_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = with_condition

    def of_status(*arguments: Any, **options: Any) -> Any:
        return honest(*arguments, **{**options, "times_status": True})

    monkeypatch.setattr("controllers.reconciler.with_condition", of_status)


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (_stale_shown_as_fresh, "the metric observed of pd is"),
        (_member_of_a_pending_pod_leads, "is Pending and healthy"),
        (_unknown_in_green, "the page shows in green what is unknown"),
        (_silent_doctor, "doctor does not find PDQuorumLost"),
        (_silent_metric, "the metric unavailable has []"),
        (_silent_events, "no Warning event has the reason PDQuorumLost"),
        (_time_of_another_reason, "when Ready had another reason"),
    ],
)
@pytest.mark.rule("O8")
def test_reports_a_surface_that_hides_an_outage(plant: Plant, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = broken(generated("outage/pd.pending.most"), lambda: plant(monkeypatch))
    assert any(violation.rule == "O8" and expected in violation.what for violation in outcome.violations)


@pytest.mark.rule("O8")
def test_reports_an_outage_whose_cause_is_never_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("outage/tidb.crashing.all")
    outcome = broken(plan, lambda: monkeypatch.setattr("controllers.tidbcluster.conditions.headline", _nothing))
    assert any("NoTiDBServer is the cause" in violation.what for violation in outcome.violations)


@pytest.mark.rule("O8")
def test_reports_a_deleted_secret_that_the_condition_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("outage/tikv.no-secret.all")
    outcome = broken(plan, lambda: monkeypatch.setattr("kube.secret_reads.SecretReads.changed", lambda *_: ()))
    assert any("CertificatesValid does not name Secret" in violation.what for violation in outcome.violations)


def test_reports_an_alert_that_does_not_fire(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    every = (rule for group in rules["groups"] for rule in group["rules"])
    (alert,) = [rule for rule in every if rule["alert"] == "TidbClusterUnavailable"]
    alert["for"] = "3m"
    slow = tmp_path / "rules.yaml"
    slow.write_text(yaml.safe_dump(rules), encoding="utf-8")
    monkeypatch.setattr("simulate.judge.alerts.RULES", slow)
    (found,) = misalerted(["outage/pd.pending.all"]).values()
    assert ["the alert does not fire at 1m30s"] == found
