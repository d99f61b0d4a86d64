"""The family *log-flush*, and the judge's notice of restarts without a flush of the log backup."""

import pytest

import member.tikv.rolling
from kube.objects import Object
from member.context import ReconcileContext
from simulate.engine.plan import InvalidPlan, World
from simulate.families.generate import generated
from simulate.families.log_flushes import FAMILY
from tests.simulate.planting import rules

_PLANS = list(FAMILY.plans())


def test_each_trouble_has_a_plan_for_a_roll_and_for_a_command() -> None:
    troubles = {plan.name.partition("/")[2].partition("@")[0].partition(".")[::2] for plan in _PLANS}
    assert {cause for cause, _ in troubles} == {"roll", "command"}
    assert len(troubles) == 2 * len({trouble for _, trouble in troubles})
    for plan in _PLANS[::10]:
        assert plan == generated(plan.name)


def test_a_log_backup_runs_before_the_edit() -> None:
    plan = generated("log-flush/roll.silent@0")
    (begun,) = plan.given
    assert isinstance(begun, World)
    assert ("log_backup", True) == (begun.verb, (begun.at or 0.0) < (plan.edits[0].at or 0.0))


@pytest.mark.parametrize("rest", ["", "roll", "roll.silent", "roll.rain@0", "storm.silent@0", "roll.crash@soon"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `CAUSE\.TROUBLE@WRITE`"):
        FAMILY.plan(rest)


async def _nothing(_: ReconcileContext, __: Object) -> None:
    return None


async def _silently(ctx: ReconcileContext, pod: Object, _: str) -> None:
    ctx.memory.flushes.drop(pod.metadata.uid)


async def _at_once(*_: object) -> bool:
    return True


@pytest.mark.slow
@pytest.mark.planted
def test_reports_a_restart_without_a_request_to_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("log-flush/roll.none@0")
    assert set() == rules(plan, lambda: None)
    assert {"flush"} == rules(plan, lambda: monkeypatch.setattr(member.tikv.rolling, "flush_log_backup", _nothing))


@pytest.mark.slow
@pytest.mark.planted
def test_reports_a_flush_that_is_given_up_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("log-flush/roll.closed@0")
    assert set() == rules(plan, lambda: None)
    assert {"flush"} == rules(plan, lambda: monkeypatch.setattr(member.tikv.rolling, "_give_up_flush", _silently))


@pytest.mark.slow
@pytest.mark.planted
def test_reports_silence_that_is_taken_for_success(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = generated("log-flush/roll.silent@0")
    assert {"flush"} == rules(plan, lambda: monkeypatch.setattr(member.tikv.rolling, "_is_flushed", _at_once))
