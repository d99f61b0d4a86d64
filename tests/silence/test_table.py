"""The table of destructive steps is complete, and the one of the document."""

import ast

import pytest

from tests.silence.columns import Column
from tests.silence.document import rendered
from tests.silence.scenarios import SCENARIOS
from tests.silence.sites import ROOT, sites
from tests.silence.table import MEANINGS, OTHERS, ROWS, Other

_LISTED = [*(site for row in ROWS for site in row.sites), *(site for row in OTHERS for site in row.sites)]


@pytest.mark.slow
@pytest.mark.rule("F5")
def test_every_call_that_destroys_has_a_row() -> None:
    found = sites()
    assert [] == sorted(found - set(_LISTED)), "say in tests/silence/table.py what a silence makes of it"
    assert [] == sorted(set(_LISTED) - found), "the code no longer has it"


def test_each_call_is_in_one_row() -> None:
    assert len(_LISTED) == len(set(_LISTED))


def test_each_scenario_drives_one_row_and_each_row_has_a_cell_for_each_silence() -> None:
    assert sorted(SCENARIOS) == sorted(row.scenario for row in ROWS)
    assert {len(Column)} == {len(row.cells) for row in ROWS}
    assert MEANINGS.keys() == {cell for row in ROWS for cell in row.cells}


def test_the_document_has_these_tables() -> None:
    assert rendered() in (ROOT / "docs/rules/silence.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.step)
def test_the_tests_of_each_other_step_exist(row: Other) -> None:
    assert (ROOT / row.shown_by).exists()


@pytest.mark.parametrize("row", [row for row in OTHERS if row.asks_none], ids=lambda row: row.step)
def test_the_module_of_a_step_that_asks_no_data_plane_has_no_client_of_it(row: Other) -> None:
    for module in {site.partition(" ")[0] for site in row.sites}:
        tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        imported = {f"{each.module}.{name.name}" for each in imports for name in each.names}
        assert [] == [name for name in imported if name.startswith(("dataplane.", "member.api_clients"))]
