"""The maximum of all long answers together (docs/security.md)."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dataplane.answer_budget import SHORT, AnswerBudget
from dataplane.http_transport import HttpTransport
from ports.transport import AnswerRefused, Request, Response, TransportError
from tests.dataplane.test_http_transport import answers, get, serving

_MOST = 16 * SHORT
_LENGTH = 6 * SHORT
"""The length of the test's long answers: two of them fit."""
_KNOWN = f"HTTP/1.1 200 OK\r\nContent-Length: {_LENGTH}\r\n\r\n"
_LONG = _KNOWN + "x" * _LENGTH


@pytest.fixture
def budget() -> AnswerBudget:
    return AnswerBudget(_MOST)


@pytest.fixture
def transports(budget: AnswerBudget) -> Iterator[list[HttpTransport]]:
    """Transports of several TLS identities."""
    made = [HttpTransport({}, budget=budget) for _ in range(4)]
    yield made
    for each in made:
        each.close()


def _get(port: int, timeout: float = 5.0) -> Request:
    return replace(get(port, timeout), longest_answer=_LENGTH)


def _asked(transport: HttpTransport, port: int, timeout: float = 1.0) -> Response | str:
    try:
        return transport.request(_get(port, timeout))
    except AnswerRefused as refused:
        return str(refused)


def test_all_transports_together_hold_no_more_than_the_maximum(
    budget: AnswerBudget, transports: list[HttpTransport]
) -> None:
    with serving(answers(_LONG)) as port:
        found = [_asked(each, port) for each in transports]
    assert [True, True, False, False] == [isinstance(each, Response) for each in found]
    assert 2 * _LENGTH == budget.held
    assert f"the operator holds {2 * _LENGTH} of {_MOST} bytes of long answers of all clusters" in str(found[2])


def test_an_answer_that_is_no_longer_used_makes_room(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    with serving(answers(_LONG)) as port:
        for each in transports:
            assert isinstance(_asked(each, port, timeout=20.0), Response)
    assert 0 == budget.held


def test_waits_for_room_until_the_deadline_of_the_answer(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    held = [budget.reserve(_LENGTH, 0.0) for _ in range(2)]
    found: list[Response] = []
    with serving(answers(_LONG)) as port:
        asking = threading.Thread(target=lambda: found.append(transports[0].request(_get(port))))
        asking.start()
        asking.join(0.3)
        assert [] == found
        for each in filter(None, held):
            each.close()
        asking.join(5)
    assert [_LENGTH] == [len(each.body) for each in found]


def test_short_answers_need_no_room(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    budget.reserve(_MOST, 0.0)
    body = "x" * SHORT
    with serving(answers(f"HTTP/1.1 200 OK\r\nContent-Length: {SHORT}\r\n\r\n{body}")) as port:
        assert SHORT == len(transports[0].request(_get(port)).body)


def test_an_unannounced_answer_reserves_its_maximum_and_keeps_its_length(
    budget: AnswerBudget, transports: list[HttpTransport]
) -> None:
    body = "x" * (SHORT + 1)
    with serving(answers(f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")) as port:
        answer = transports[0].request(_get(port))
        assert len(answer.body) == budget.held == SHORT + 1
        budget.reserve(_MOST - _LENGTH, 0.0)
        assert "no room for its answer" in str(_asked(transports[1], port))


@pytest.mark.parametrize("sent", [_KNOWN + "cut", _KNOWN.replace("200", "700") + "cut", _LONG[:-1]])
def test_a_failed_answer_frees_its_room(budget: AnswerBudget, transports: list[HttpTransport], sent: str) -> None:
    with serving(answers(sent)) as port, pytest.raises(TransportError):
        transports[0].request(_get(port))
    assert 0 == budget.held
