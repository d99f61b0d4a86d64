"""A copy of another namespace's certificate stays, is made without consent, or an upgrade stops what runs."""

import pytest

from apis.consent import Permission, ReferencePolicy
from controllers import consent, target_cluster
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_reports_a_copy_that_outlives_the_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(target_cluster, "withdraw", lambda *_, **__: None)  # noqa: E731
    assert {"consent"} == rules(generated("consent/ng-monitoring/withdrawn/left/stale/none"), plant)


def test_reports_a_reference_without_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: object) -> Permission:
        return Permission.OPEN

    plant = lambda: monkeypatch.setattr(ReferencePolicy, "judge", judge)  # noqa: E731
    assert {"consent"} == rules(generated("consent/monitor/never/none/none/none"), plant)


def test_reports_a_dashboard_that_an_upgrade_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(consent, "marks", lambda _: frozenset({"TidbCluster default/basic"}))  # noqa: E731
    assert {"consent"} == rules(generated("consent/dashboard/upgraded/none/none/none"), plant)
