"""The table as docs/rules/silence.md has them."""

from collections.abc import Iterator

from tests.silence.columns import Column
from tests.silence.table import MEANINGS, ROWS


def rendered() -> str:
    """The meanings of the cells, and the table."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield from (f"- *{cell}*: {meaning}." for cell, meaning in MEANINGS.items())
    yield ""
    yield _row("Step", *(column.value for column in Column))
    yield _row(*["---"] * (1 + len(Column)))
    yield from (_row(row.step, *row.cells) for row in ROWS)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
