"""The judge notices an operator that never yields to an insistent client, or does not report it: one defect in each
test."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kube import contests
from kube.contests import Contests
from simulate.engine.plan import Insists, Plan
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_CHANGES = Insists(at=1.0, target="services/basic-pd", patch={"spec": {"type": "NodePort"}}, seconds=30.0)
_DELETES = Insists(at=1.0, target="services/basic-pd", seconds=30.0)


def plan_of(rival: Insists) -> Plan:
    """That, and the time until it counts as over."""
    return Plan(name=f"insist/{rival.target}", faults=(rival,), budget=rival.seconds + 240.0, reference=False)


@pytest.mark.parametrize("rival", [_CHANGES, _DELETES], ids=["changes", "deletes"])
@pytest.mark.rule("FP11")
def test_reports_nothing_without_a_defect(rival: Insists) -> None:
    assert set() == rules(plan_of(rival), lambda: None)


@pytest.mark.parametrize(
    ("rival", "name", "answer"),
    [(_CHANGES, "allows", lambda *_: True), (_DELETES, "require_creation", lambda *_: None)],
    ids=["changes", "deletes"],
)
@pytest.mark.rule("FP11")
def test_reports_a_write_repeated_each_time_a_rival_reverts_it(
    rival: Insists, name: str, answer: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "FP11" in rules(plan_of(rival), lambda: monkeypatch.setattr(Contests, name, answer))


@pytest.mark.rule("FP11")
def test_reports_a_contest_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(contests, "_tell", lambda _: None)  # noqa: E731

    assert "FP11" in rules(plan_of(replace(_CHANGES, seconds=300.0)), plant)
