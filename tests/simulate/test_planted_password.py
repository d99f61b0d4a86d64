"""The check of root's first password can fail: each test plants one defect."""

import pytest

import member.tidb.password
from dataplane.sql import RootClient
from tests.simulate.planting import rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


@pytest.mark.rule("6.9")
def test_reports_a_password_that_no_secret_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(_: object) -> str:
        return "lost"

    plant = lambda: monkeypatch.setattr(member.tidb.password, "_password", lost)  # noqa: E731

    assert "6.9" in rules(short("password"), plant)


@pytest.mark.rule("6.9")
def test_reports_a_status_that_claims_the_password_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(RootClient, "set_password", lambda *_: None)  # noqa: E731

    assert "6.9" in rules(short("password"), plant)
