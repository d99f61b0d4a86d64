"""Each cell of the table: what the operator does while something is silent, slow or old (docs/rules/silence.md)."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.silence.columns import Column
from tests.silence.scenarios import SCENARIOS, acts, begin, made, run
from tests.silence.table import ROWS, WAITS, Row

_WATCHED = 120.0
"""Seconds of silence, in which a step that waits for nothing is taken; a node that is cut off is not yet given up."""

_SLOWLY = 400.0
"""The same where each answer takes ten seconds."""

_AGAIN = 240.0
"""Seconds within which the step is taken once everything answers."""

_ALWAYS = (Column.SILENT, Column.CACHE)
"""What `make test` tries; the other columns are tried by `make test-thorough`."""


def _cells() -> Iterator[object]:
    for row, column in product(ROWS, Column):
        marks = [pytest.mark.slow, *([] if column in _ALWAYS else [pytest.mark.thorough])]
        yield pytest.param(row, column, marks=marks, id=f"{row.scenario}-{column.name.lower()}")


@pytest.mark.parametrize(("row", "column"), list(_cells()))
def test_silence_x_destructive_step(row: Row, column: Column) -> None:
    scenario = SCENARIOS[row.scenario]
    world = made(scenario)
    try:
        end = begin(world, scenario, column)
        run(world, _SLOWLY if column is Column.SLOW else _WATCHED)
        assert (row.cell(column) != WAITS) == bool(acts(world, scenario)), world.progressing
        if column is Column.SILENT:
            # the step is one that the operator takes
            end()
            run(world, _AGAIN)
            assert acts(world, scenario), world.progressing
    finally:
        world.stop()
