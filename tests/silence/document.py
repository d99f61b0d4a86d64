"""The table as docs/rules/silence.md has it."""

from collections.abc import Iterator, Sequence

from tests.silence.columns import Column
from tests.silence.table import MEANINGS, ROWS


def rendered() -> str:
    """The meanings of the cells, a table with a row for each group of steps whose cells are equal, and the groups."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from (f"- *{cell}*: {meaning}." for cell, meaning in MEANINGS.items())
    yield ""
    yield _row("Steps", *(column.value for column in Column))
    yield _row(*["---"] * (1 + len(Column)))
    groups = list(enumerate(_steps_by_cells().items(), 1))
    yield from (_row(f"[Group {number}](#group-{number})", *cells) for number, (cells, _) in groups)
    for number, (_, steps) in groups:
        yield f"\n### Group {number}\n"
        yield from (f"- {step}" for step in steps)


def _steps_by_cells() -> dict[Sequence[str], list[str]]:
    steps: dict[Sequence[str], list[str]] = {}
    for row in ROWS:
        steps.setdefault(tuple(row.cells), []).append(row.step)
    return steps


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
