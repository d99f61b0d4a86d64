"""The causes: complete, without doubles, and listed in docs/troubleshooting.md."""

from collections import Counter

import pytest

from cli.doctor.diagnosis import CAUSES
from cli.doctor.finding import Cause
from cli.doctor.table import PAGE, renewed, table


def test_every_reason_has_exactly_one_cause() -> None:
    assert [] == [reason for reason, count in Counter(each.reason for each in CAUSES).items() if count > 1]
    assert 25 <= len(CAUSES)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda each: each.reason)
def test_every_cause_has_its_way_out_in_sentences(cause: Cause) -> None:
    assert cause.way_out[:1].isupper() or cause.way_out.startswith("`")
    assert cause.way_out.endswith((".", "?"))
    assert "|" not in cause.way_out


def test_the_page_contains_the_current_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert table() in page, "run `python -m cli.doctor.table`"
    assert page == renewed(page)


def test_refuses_a_page_without_markers_for_the_table() -> None:
    with pytest.raises(ValueError, match="put both where the table belongs"):
        renewed("# Troubleshooting")
