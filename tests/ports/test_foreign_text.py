"""Foreign text in conditions, events and logs cannot control a terminal."""

import io
from datetime import UTC, datetime

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from controller_manager.logs import configure_logs
from controllers.conditions import with_condition
from ports.clock import FakeClock
from ports.foreign_text import LONGEST_QUOTE, printable, shortened

CLEAR_SCREEN = "\x1b[2J"
_HARMFUL = [CLEAR_SCREEN, "\x9b2J", "\u202egnp.exe", "\r", "\x08", "\x7f", "\ud800"]


@given(st.text())
def test_removes_characters_that_a_terminal_would_obey(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(text, lines=True).replace("\n", "").isprintable()
    assert len(text) == len(printable(text))


@given(st.text())
def test_cuts_a_quote_to_its_maximum_length(text: str) -> None:
    assert len(shortened(text)) <= LONGEST_QUOTE


@pytest.mark.parametrize("harmful", _HARMFUL)
def test_a_condition_has_no_control_characters_and_settles(harmful: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    value = (False, "InvalidSpec", f"spec.br.cluster: {harmful} is no name")
    first = with_condition([], "Progressing", value, now)
    assert first[0]["message"].isprintable()
    assert first == with_condition(first, "Progressing", value, now)


@pytest.mark.parametrize("harmful", _HARMFUL)
def test_a_log_line_has_no_control_characters(harmful: str) -> None:
    stream = io.StringIO()
    configure_logs(0, clock=FakeClock(), stream=stream)
    structlog.get_logger("test").info("answered", cause=f"a{harmful}b")
    assert stream.getvalue().rstrip("\n").isprintable()
