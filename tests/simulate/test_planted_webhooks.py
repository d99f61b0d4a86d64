"""The judge notices if the operator undoes changes by admission webhooks, or takes them for the user's."""

import pytest

from kube.admitted import Admitted
from member.apply import claim_templates, stateful_set
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_reports_claim_templates_compared_with_the_live_object(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(claim_templates, "read_record", lambda _: None)  # noqa: E731
    assert "O7" in rules(generated("admission/storage-class/bring-up"), plant)


def test_reports_a_pod_template_that_is_rewritten_endlessly(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(Admitted, "holds", lambda *_: False)  # noqa: E731
    assert {"O3", "O10"} <= rules(generated("admission/mirror-everywhere/bring-up"), plant)


def test_reports_a_partition_write_that_also_changes_the_pod_template(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(stateful_set, "_with_admitted_template", lambda desired, *_: desired)  # noqa: E731
    assert {"I11", "I15", "I41"} <= rules(generated("admission/variable/tikv-upgrade"), plant)
