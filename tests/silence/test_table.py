"""The table of destructive steps is complete, and the one of the document."""

import pytest

from member.actions import Destructive
from tests.silence.columns import Column
from tests.silence.document import rendered
from tests.silence.scenarios import SCENARIOS
from tests.silence.sites import ACTIONS, ROOT, sites
from tests.silence.table import MEANINGS, ROWS

_LISTED = [site for row in ROWS for site in row.sites]


@pytest.mark.slow
@pytest.mark.rule("F5")
def test_every_call_that_destroys_has_a_row() -> None:
    found = sites()
    assert [] == sorted(found - set(_LISTED)), "say in tests/silence/table.py what a silence makes of it"
    assert [] == sorted(set(_LISTED) - found), "the code no longer has it"


def test_every_destructive_action_is_searched_for() -> None:
    assert {each.__name__ for each in Destructive.__subclasses__()} <= ACTIONS


def test_each_call_is_in_one_row() -> None:
    assert len(_LISTED) == len(set(_LISTED))


def test_each_scenario_drives_one_row_and_each_row_has_a_cell_for_each_silence() -> None:
    assert sorted(SCENARIOS) == sorted(row.scenario for row in ROWS)
    assert {len(Column)} == {len(row.cells) for row in ROWS}
    assert MEANINGS.keys() == {cell for row in ROWS for cell in row.cells}


def test_the_document_has_this_table() -> None:
    assert rendered() in (ROOT / "docs/rules/silence.md").read_text(encoding="utf-8")
