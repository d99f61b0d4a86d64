"""Polls that a rehearsal puts off: only those at which servers would answer as at the last one."""

from collections.abc import Callable

import pytest

from controllers.controller import Result
from ports.clock import FakeClock
from ports.transport import ByteStream, ConnectionRefused, Request, RequestTimeout, Response
from rehearsal.polls import Polls

_STORES = Request("GET", "http://pd:2379/pd/api/v1/stores")
_WAITS = Result(requeue_after=0.5)
_BEAT = b'{\n  "last_heartbeat": 1796026668000000000,\n  "uptime": "5s"\n}'


class _Servers:
    """Servers whose answers a test changes."""

    def __init__(self) -> None:
        self.answer: Response | Exception = Response(200, {}, b"[]")

    def request(self, request: Request) -> Response:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise AssertionError(request)


class _Operator:
    """An operator that asks servers one question in each sync."""

    def __init__(self) -> None:
        self.clock, self.servers = FakeClock(), _Servers()
        self.version = 1
        self.polls = Polls(self.clock, lambda: self.version)
        self._transport = self.polls.noting(self.servers)

    def sync(self, result: Result | None = _WAITS, request: Request = _STORES, key: str = "a") -> None:
        """Let it reconcile an object."""

        def ask(_: str) -> Result | None:
            try:
                self._transport.request(request)
            except (ConnectionRefused, RequestTimeout):
                return result
            return result

        self._sync(key, ask)

    def fail(self) -> None:
        """Let it fail to reconcile an object."""
        with pytest.raises(ZeroDivisionError):
            self._sync("a", lambda _: Result(1 / 0))

    def _sync(self, key: str, sync: Callable[[str], Result | None]) -> None:
        self._syncs = sync
        self.polls.watched(self._any)(key)

    def _any(self, key: str) -> Result | None:
        return self._syncs(key)


@pytest.fixture
def operator() -> _Operator:
    return _Operator()


def _refused() -> Exception:
    return ConnectionRefused("GET", _STORES.url, "nothing listens")


def _silent() -> Exception:
    return RequestTimeout("GET", _STORES.url, "no answer")


@pytest.mark.parametrize("answer", [Response(200, {}, b"[]"), Response(503, {}, b""), _refused()])
def test_a_poll_waits_while_servers_answer_the_same_and_no_longer(
    operator: _Operator, answer: Response | Exception
) -> None:
    operator.servers.answer = answer
    operator.sync()
    assert operator.polls.may_wait()
    operator.clock.step(4.9)
    assert operator.polls.may_wait()
    operator.clock.step(0.1)
    assert not operator.polls.may_wait()


def test_a_poll_waits_longer_the_longer_nothing_happens(operator: _Operator) -> None:
    operator.sync()
    operator.clock.step(1000)
    operator.sync()
    operator.clock.step(49)
    assert operator.polls.may_wait()
    operator.clock.step(6)
    assert not operator.polls.may_wait()


@pytest.mark.parametrize("news", ["of Kubernetes", "of a server"])
def test_news_end_a_long_wait(operator: _Operator, news: str) -> None:
    operator.sync()
    operator.clock.step(1000)
    if news == "of Kubernetes":
        operator.version += 1
    else:
        operator.servers.answer = Response(200, {}, b"[1]")
        assert not operator.polls.may_wait()
    operator.sync()
    assert operator.polls.may_wait()
    operator.clock.step(5)
    assert not operator.polls.may_wait()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Response(200, {}, b"[]"), Response(200, {}, b"[1]")),
        (Response(200, {}, b"[]"), Response(500, {}, b"[]")),
        (Response(200, {}, b"[]"), _refused()),
        (_refused(), Response(200, {}, b"[]")),
        (_silent(), _silent()),
        (Response(200, {}, _BEAT), Response(200, {}, _BEAT.replace(b"}", b', "leader_count": 1}'))),
    ],
)
def test_another_answer_is_worth_a_poll(
    operator: _Operator, before: Response | Exception, after: Response | Exception
) -> None:
    operator.servers.answer = before
    operator.sync()
    operator.servers.answer = after
    assert not operator.polls.may_wait()


def test_another_heartbeat_alone_is_not(operator: _Operator) -> None:
    operator.servers.answer = Response(200, {}, _BEAT)
    operator.sync()
    operator.servers.answer = Response(200, {}, _BEAT.replace(b"26668", b"26678").replace(b"5s", b"15s"))
    assert operator.polls.may_wait()


def test_one_object_with_news_is_enough(operator: _Operator) -> None:
    operator.sync(key="b")
    operator.servers.answer = Response(200, {}, b"[1]")
    operator.sync(key="a")
    assert not operator.polls.may_wait()
    # b is at rest
    operator.sync(key="b", result=None)
    assert operator.polls.may_wait()


def test_what_has_changed_a_server_or_failed_is_not_put_off(operator: _Operator) -> None:
    assert not operator.polls.may_wait()
    operator.sync(request=Request("DELETE", "http://pd:2379/pd/api/v1/store/4"))
    assert not operator.polls.may_wait()
    operator.fail()
    assert not operator.polls.may_wait()
    operator.sync()
    assert operator.polls.may_wait()
