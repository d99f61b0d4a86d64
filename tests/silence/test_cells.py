"""Each cell of the table: what the operator does while something is silent, slow or old (docs/rules/silence.md)."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from tests.silence.columns import Column
from tests.silence.scenarios import SCENARIOS, acts, begin, made, run, silenced
from tests.silence.table import NEVER, ROWS, WAITS, Row

_WATCHED = 120.0
"""Seconds of silence, in which a step that waits for nothing happens; a node that is cut off does not count as lost
yet."""

_SLOWLY = 400.0
"""Seconds of watching where each answer takes ten seconds."""

_AGAIN = 240.0
"""Seconds within which the step is taken once everything answers."""

_IN_TURN = (Column.OPERATOR, Column.HALF, Column.MINORITY, Column.SILENT)
"""Silences that may follow each other in one world, as long as the step waits for their end."""


def _in_turn(row: Row) -> Sequence[Column]:
    return [column for column in _IN_TURN if row.cell(column) == WAITS and not row.given_up]


def _others() -> Iterator[object]:
    """The other cells; `make test` leaves all except the old cache to `make test-thorough`."""
    for row, column in product(ROWS, Column):
        if column not in _in_turn(row):
            marks = [pytest.mark.slow, *([] if column is Column.CACHE else [pytest.mark.thorough])]
            yield pytest.param(row, column, marks=marks, id=f"{row.scenario}-{column.name.lower()}")


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if _in_turn(row)], ids=lambda row: row.scenario)
def test_a_step_outlasts_silences_and_is_taken_when_they_end(row: Row) -> None:
    scenario = SCENARIOS[row.scenario]
    first, *others = _in_turn(row)
    world = made(scenario)
    try:
        end = begin(world, scenario, first)
        run(world, _WATCHED)
        assert [] == acts(world, scenario), first
        for column in others:
            # without a moment in between
            heal, end = end, silenced(world, scenario, column)
            heal()
            run(world, _WATCHED)
            assert [] == acts(world, scenario), column
        end()
        run(world, _AGAIN)
        assert acts(world, scenario), world.progressing
        assert [] == world.defects
    finally:
        world.stop()


@pytest.mark.parametrize(("row", "column"), list(_others()))
def test_a_silence_x_a_destructive_step(row: Row, column: Column) -> None:
    scenario = SCENARIOS[row.scenario]
    world = made(scenario)
    try:
        begin(world, scenario, column)
        run(world, _SLOWLY if column is Column.SLOW else _WATCHED)
        assert (row.cell(column) not in (WAITS, NEVER)) == bool(acts(world, scenario)), world.progressing
        assert [] == world.defects
    finally:
        world.stop()
