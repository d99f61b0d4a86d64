"""The family *lie*: its plans, a sample of them, and defects under which a lie costs data or writes without end."""

from collections.abc import Iterable

import pytest

import controllers.status_pacing
import kube.contests
import member.dm.component
import member.evidence
import member.pd.scaling
import member.stores.evictions
import member.stores.status
from dataplane.errors import Conflict
from dataplane.pd import PDClient
from member.context import ReconcileContext
from simulate.engine.plan import InvalidPlan
from simulate.families.generate import generated
from simulate.families.lies import FAMILY
from simulate.run import prepare, run
from tests.simulate.planting import rules

_PLANS = list(FAMILY.plans())


def test_finds_each_plan_by_its_name() -> None:
    assert len(_PLANS) == len({plan.name for plan in _PLANS})
    for plan in _PLANS[::40]:
        assert plan == generated(plan.name)


@pytest.mark.parametrize("rest", ["", "no-stores", "no-stores.nobody.rest", "no-lie.all.rest", "no-stores.all.pd-in"])
def test_refuses_a_name_that_is_no_plan(rest: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `LIE\.WHO\.SITUATION`"):
        FAMILY.plan(rest)


_TOMBSTONE = "lie/store-is-tombstone.follower.tikv-in"
_FLAPPING = "lie/store-is-tombstone.turns.rest"
_TWICE = "lie/store-is-there-twice.all.rest"
_NO_MASTER = "lie/dm-member-is-missing.all.dm-rest"
_ANOTHER_LEADS = "lie/another-leads.all.pd-in"
_DENIED = "lie/no-leaders-are-evicted.all.tikv-in"
_NOT_LISTED = "lie/no-leaders-are-evicted.follower.tikv-in"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        _TOMBSTONE,
        _FLAPPING,
        "lie/another-cluster.all.pd-in",
        "lie/no-leaders-are-evicted.all.tikv-roll",
        _ANOTHER_LEADS,
        _DENIED,
        "lie/member-of-another-cluster.follower.pd-roll",
        _NO_MASTER,
        _NOT_LISTED,
        _TWICE,
        "lie/owns-nothing.all.ticdc-in",
        "lie/store-of-another-cluster.follower.tikv-roll",
        "lie/store-is-offline.follower.tikv-roll",
    ],
)
def test_a_lie_costs_no_more_than_it_may(name: str) -> None:
    plan = generated(name)
    assert () == run(prepare(plan), plan).violations


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_that_one_lying_follower_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(*_: object) -> list[str]:
        return []

    assert "I3" in rules(
        generated(_TOMBSTONE), lambda: monkeypatch.setattr(member.evidence, "_ready_members", careless)
    )


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_writes_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> None:
        monkeypatch.setattr(kube.contests, "BACK_AND_FORTH", 10**6)
        monkeypatch.setattr(controllers.status_pacing.StatusPacing, "pause", lambda *_: 0.0)

    assert "lies" in rules(generated(_FLAPPING), endless)


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_an_eviction_that_begins_with_each_contradictory_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.stores.evictions, "_AGAIN", 0.0)
    assert "lies" in rules(generated(_NOT_LISTED), lambda: None)


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_a_transfer_of_the_leadership_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member.pd.scaling, "_ASK_AGAIN", 0.0)
    assert "lies" in rules(generated(_ANOTHER_LEADS), lambda: None)


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_a_wait_that_names_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(pods: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(pods, 1)

    monkeypatch.setattr(member.stores.status, "Counter", careless)
    assert "lies" in rules(generated(_TWICE), lambda: None)


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_a_condition_with_two_reasons_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error at each request for an eviction, and a wait between them."""
    begin = member.stores.evictions.begin

    async def contradicted(ctx: ReconcileContext, pd: PDClient, store: int) -> None:
        is_repeated = store in ctx.memory.evicted_stores
        await begin(ctx, pd, store)
        if is_repeated:
            raise Conflict("POST", "/pd/api/v1/schedulers", 200, b"", "PD contradicts itself")

    assert "alternation" in rules(
        generated(_DENIED), lambda: monkeypatch.setattr(member.stores.evictions, "begin", contradicted)
    )


@pytest.mark.slow
@pytest.mark.planted
def test_judge_notices_a_wait_of_dm_that_names_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(*_: object) -> str:
        return ""

    assert "lies" in rules(generated(_NO_MASTER), lambda: monkeypatch.setattr(member.dm.component, "named", careless))
