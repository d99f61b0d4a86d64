"""What admission webhooks make of a write is fought, or taken for a wish of the user."""

import pytest

from kube.admitted import Admitted
from member.apply import claim_templates, stateful_set
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_claim_templates_are_compared_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(claim_templates, "read_record", lambda _: None)  # noqa: E731
    assert "O7" in rules(generated("admission/storage-class/bring-up"), plant)


def test_a_pod_template_is_written_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(Admitted, "holds", lambda *_: False)  # noqa: E731
    assert {"O3", "O10"} <= rules(generated("admission/mirror-everywhere/bring-up"), plant)


def test_the_pod_template_goes_along_with_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(stateful_set, "_with_admitted_template", lambda desired, *_: desired)  # noqa: E731
    assert {"I11", "I15", "I41"} <= rules(generated("admission/variable/tikv-upgrade"), plant)
