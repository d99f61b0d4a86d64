"""The family *addition*, and the judge's notice of what its users would not get."""

import pytest

from simulate.engine.plan import InvalidPlan, Newer
from simulate.families.additions import FAMILY
from simulate.families.generate import generated
from tests.simulate.planting import rules

_PLANS = list(FAMILY.plans())


def test_each_change_meets_a_silence_a_loss_and_a_crash() -> None:
    rests = {plan.name.partition("/")[2].partition("@")[0] for plan in _PLANS}
    for change in ("new-keys", "other-class", "overlay", "newer"):
        assert {
            f"{change}.{trouble}" for trouble in ("pd-silent", "tikv-silent", "lost", "crash", "unanswered")
        } <= rests
    assert "new-keys.ticdc-silent" in rests
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)


def test_a_newer_operator_comes_before_the_user() -> None:
    plan = generated("addition/newer.none@0")
    (installed,) = plan.given
    assert isinstance(installed, Newer)
    assert (installed.at or 0.0) < (plan.edits[0].at or 0.0)


@pytest.mark.parametrize(
    "rest", ["", "newer", "newer.pd-silent", "newer.rain@0", "older.pd-silent@0", "newer.crash@soon"]
)
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `CHANGE\.TROUBLE@WRITE`"):
        FAMILY.plan(rest)


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "part", "defect", "rule"),
    [
        ("new-keys.ticdc-silent@0", "member.tici.changefeed._is_recorded", lambda *_: True, "fulfilled"),
        ("other-class.none@0", "member.volumes.changes._moves", lambda *_: iter(()), "fulfilled"),
        ("overlay.none@0", "member.objects.stateful_set.overlay_of", lambda _: None, "fulfilled"),
        ("newer.none@0", "member.lifecycle.wanted_state.own_change", lambda *_, **__: None, "I42"),
        ("newer.none@0", "controllers.tidbcluster.conditions.pending_changes", lambda _: {}, "fulfilled"),
    ],
)
def test_reports_a_planted_defect(
    monkeypatch: pytest.MonkeyPatch, name: str, part: str, defect: object, rule: str
) -> None:
    found = rules(generated(f"addition/{name}"), lambda: monkeypatch.setattr(part, defect))
    assert rule in found, found
