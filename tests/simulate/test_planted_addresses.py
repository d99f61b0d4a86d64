"""Defects in how members and stores are recognised, each of which the judge must see."""

import pytest

import apis.validation.changes
import apis.validation.listening
from apis.problem import Problem
from dataplane.addresses import AddressBook, Stranger
from kube.objects import Json
from simulate.engine.plan import Edit, Plan
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_WITHOUT = Edit(at=1.0, spec={"clusterDomain": None})
_SCALED = Edit(at=120.0, spec={"pd": {"replicas": 1}, "tikv": {"version": "v8.5.3"}})
_PLAN = Plan(name="domain", cluster="domain", budget=500.0, edits=(_WITHOUT, _SCALED))


def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*_: object) -> list[Problem]:
        return []

    monkeypatch.setattr(apis.validation.changes, "_check_domain", check)


@pytest.mark.rule("I4", "I11", "I12")
def test_members_are_recognised_under_their_former_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set() == rules(_PLAN, lambda: _unguarded(monkeypatch))


@pytest.mark.rule("I11", "I12")
def test_reports_addresses_compared_with_the_domain_of_the_spec_only(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AddressBook.owner_of

    def literal(book: AddressBook, component: str, address: str) -> int | Stranger:
        domain = book.domain_of(component, address)
        return honest(book, component, address) if domain in ("", book.cluster_domain) else Stranger.PEER

    def plant() -> None:
        _unguarded(monkeypatch)
        monkeypatch.setattr(AddressBook, "owner_of", literal)

    assert rules(_PLAN, plant) & {"I4", "I11", "I12"}


@pytest.mark.parametrize(
    "tidb",
    [
        {"config": {"port": 4001}},
        {"config": "[status]\nreport-status = false\n"},
        {"config": {"status": {"status-host": "127.0.0.1"}}},
        {"arguments": ["--status=10090"]},
    ],
)
@pytest.mark.rule("R25")
def test_reports_an_accepted_setting_that_moves_a_server(monkeypatch: pytest.MonkeyPatch, tidb: Json) -> None:
    plan = Plan(name="moved", budget=200.0, edits=(Edit(at=1.0, spec={"tidb": tidb}),), ends="InvalidSpec")

    def check(*_: object) -> list[Problem]:
        return []

    def plant() -> None:
        monkeypatch.setattr(apis.validation.listening, "check_config", check)
        monkeypatch.setattr(apis.validation.listening, "check_arguments", check)

    assert set() == rules(plan, lambda: None)
    assert "O10" in rules(plan, plant)
