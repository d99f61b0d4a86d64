"""The diagrams of docs/states.md show what the decisions do."""

import typing

import pytest

from member.failover import quorum
from member.lifecycle import roll_steps
from member.outcome import Wait
from member.stores import scaling
from tests.states.diagrams import DIAGRAMS, DOCUMENT, edges, meanings, with_diagrams
from tests.states.worlds import Failover, Roll, ScaleIn


def test_the_document_has_the_present_diagrams() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_diagrams(text) == text, "make format"


@pytest.mark.parametrize(
    ("number", "steps"),
    [(0, roll_steps.Step), (1, scaling.Step), (2, quorum.Step)],
    ids=["roll", "scale-in", "failover"],
)
def test_every_step_of_a_decision_is_in_its_diagram(number: int, steps: object) -> None:
    wanted = {(typing.get_origin(each) or each).__name__ for each in typing.get_args(steps)} - {Wait.__name__}
    shown = meanings(DIAGRAMS[number][1])
    ends = {"Finished"}
    assert set() == wanted - ends - set(shown)


def test_a_ready_pod_is_prepared_only_after_the_one_before_it_serves() -> None:
    before = {one for one, other in edges([Roll()]) if other == "Prepare"}
    assert {"[*]", "WaitUntilServesAgain"} == before


def test_a_store_goes_offline_only_after_its_leaders_or_a_wait() -> None:
    before = {one for one, other in edges([ScaleIn()]) if other == "TakeOffline"}
    assert "[*]" not in before
    assert "Evict" in before


def test_a_member_is_removed_only_after_its_failure_is_recorded() -> None:
    before = {one for one, other in edges([Failover()]) if other == "Replace"}
    assert "RecordFailure" in before
    assert "Wait" not in before
