"""The judge notices pods and rolls that the operator neglects while an edit is refused: one defect in each test."""

from collections.abc import Callable
from datetime import timedelta

import pytest

import controllers.cluster_conditions
import member.lifecycle.component_sync
import member.lifecycle.rolling
from kube.actions import Decision
from member.apply import stateful_set
from member.context import ClusterContext
from member.lifecycle.rolling import Hook
from member.outcome import Outcome, Waiting
from simulate.families.generate import generated
from tests.simulate.planting import broken, rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]

_ORPHANED = "refused/tikv.image.orphaned@2"
_DELETED = "refused/tidb.service.deleted@2"
_WAITING = "refused/pd.loading.crash@400+allowed"
_APPROVED = "refused/tikv.unapproved.approved-by-hand@2+allowed"


@pytest.mark.parametrize("plan", [_ORPHANED, _DELETED, _APPROVED])
def test_reports_nothing_without_a_defect(plan: str) -> None:
    assert set() == rules(generated(plan), lambda: None)


@pytest.mark.rule("O10")
def test_reports_a_deleted_stateful_set_that_is_not_restored_while_an_edit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unguarded(
        _: object, __: str, update: Callable[[], Decision[Outcome]], ___: object
    ) -> tuple[Outcome, None]:
        return await update(), None

    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "updated", unguarded)  # noqa: E731

    assert "O10" in rules(generated(_ORPHANED), plant)


@pytest.mark.rule("O10")
def test_reports_a_stateful_set_held_back_by_a_refused_service(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.lifecycle.component_sync, "_has_run", lambda *_: False)  # noqa: E731

    assert "O10" in rules(generated(_DELETED), plant)


@pytest.mark.rule("I42")
def test_reports_a_foreign_edit_adopted_because_a_policy_refuses_the_revert(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = stateful_set.update

    async def forgetful(*arguments: object, **options: object) -> None:
        await honest(*arguments, **options | {"keeps_edits": False})  # type: ignore[arg-type]

    def plant() -> None:
        monkeypatch.setattr(stateful_set, "_with_admitted_template", _as_it_is)
        monkeypatch.setattr(stateful_set, "update", forgetful)

    def _as_it_is(desired: dict[str, dict[str, object]], live: dict[str, dict[str, object]], _: object) -> object:
        return desired | {"spec": desired["spec"] | {"template": live["spec"]["template"]}}

    assert rules(generated(_APPROVED), plant)


def _waiting(plant: Callable[[], object]) -> list[str]:
    """What the judge reports about a roll that waits for ever."""
    found = broken(generated(_WAITING), plant).violations
    assert {"O8"} == {each.rule for each in found}
    return [each.what for each in found]


@pytest.mark.rule("O8")
def test_reports_a_roll_that_waits_for_ever_without_being_named(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.lifecycle.rolling._wait_of_hook

    def careless(ctx: ClusterContext, component: str, hook: Hook, waiting: Waiting) -> Waiting:
        honest(ctx, component, hook, waiting)
        return waiting

    found = _waiting(lambda: monkeypatch.setattr(member.lifecycle.rolling, "_wait_of_hook", careless))
    assert "pd has waited for 660 s" in found[0]


@pytest.mark.rule("O8")
def test_reports_a_wait_that_is_named_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = timedelta(minutes=5)
    found = _waiting(lambda: monkeypatch.setattr(member.lifecycle.rolling, "_STUCK", limit))
    assert "pd counts as stuck after 3" in found[0]


@pytest.mark.rule("O8")
def test_reports_a_stuck_roll_without_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _waiting(lambda: monkeypatch.setattr(controllers.cluster_conditions, "STANDS_STILL", "planted"))
    assert ["is not shown by a Warning event" in each for each in found] == [True]
