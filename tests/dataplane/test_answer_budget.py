"""The maximum of all long answers together, and its division among namespaces (docs/security.md)."""

import contextlib
import gc
import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from dataplane.addresses import Address
from dataplane.answer_budget import SHORT, AnswerBudget, Room
from dataplane.clients import DataPlane
from dataplane.http_transport import HttpTransport
from dataplane.shared_answers import SharedAnswers
from dataplane.tls import TlsMaterial
from ports.asking import asker, asking_for
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.randomness import SeededRandomness
from ports.side_by_side import Threads
from ports.transport import AnswerRefused, Request, Response, TransportError
from tests.dataplane.certificates import Authority
from tests.dataplane.test_http_transport import answers, get, serving
from tests.e2e.waiting import eventually
from workqueue.timers import Timer, Timers

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


def _taken(budget: AnswerBudget, count: int) -> Room:
    """Room that its holder does not give up."""
    room = budget.room(lambda: None)
    assert room.take(count, lambda: 0.0)
    return room


def test_all_transports_together_hold_no_more_than_the_maximum(
    budget: AnswerBudget, transports: list[HttpTransport]
) -> None:
    with serving(answers(_LONG)) as port:
        found = [_asked(each, port, 0.3) for each in transports]
    assert [True, True, False, False] == [isinstance(each, Response) for each in found]
    assert 2 * _LENGTH == budget.held
    assert f"of {_MOST} bytes of long answers of all clusters; it asks again later" in str(found[2])


def test_an_answer_that_is_no_longer_used_makes_room(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    with serving(answers(_LONG)) as port:
        for each in transports:
            assert isinstance(_asked(each, port, timeout=20.0), Response)
    assert 0 == budget.held


def test_waits_for_room_until_the_deadline_of_the_answer(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    held = [_taken(budget, _LENGTH) for _ in range(2)]
    found: list[Response] = []
    with serving(answers(_LONG)) as port:
        asking = threading.Thread(target=lambda: found.append(transports[0].request(_get(port))))
        asking.start()
        asking.join(0.3)
        assert [] == found
        for each in held:
            each.close()
        asking.join(5)
    assert [_LENGTH] == [len(each.body) for each in found]


def test_short_answers_need_no_room(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    _taken(budget, _MOST)
    body = "x" * SHORT
    with serving(answers(f"HTTP/1.1 200 OK\r\nContent-Length: {SHORT}\r\n\r\n{body}")) as port:
        assert SHORT == len(transports[0].request(_get(port)).body)


def test_an_answer_holds_the_bytes_that_have_arrived(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    body = "x" * (SHORT + 1)
    with serving(answers(f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")) as port:
        answer = transports[0].request(_get(port))
        assert len(answer.body) == budget.held == SHORT + 1


@pytest.mark.parametrize("sent", [_KNOWN + "cut", _KNOWN.replace("200", "700") + "cut", _LONG[:-1]])
def test_a_failed_answer_frees_its_room(budget: AnswerBudget, transports: list[HttpTransport], sent: str) -> None:
    with serving(answers(sent)) as port, pytest.raises(TransportError):
        transports[0].request(_get(port))
    assert 0 == budget.held


class _AtOnce:
    """Makes each delayed call at once, so that all calls but one get helpers."""

    clock: Clock = SystemClock()

    def call_at(self, due: float, call: Callable[[], None]) -> Timer:
        call()
        return Timers(self.clock).call_at(due, call)


def test_a_helper_thread_asks_for_the_namespace_of_its_sync() -> None:
    together = threading.Barrier(2, timeout=5)

    def namespace() -> str:
        together.wait()
        return asker()

    with asking_for("one"):
        assert ["one", "one"] == Threads(_AtOnce()).run([namespace, namespace])
    assert "" == asker()


# one namespace against others

_ROOM = 16 << 20
_HOSTILE = ("mallory", "mallet", "trudy")
_READINGS = 12
"""How many servers they ask at once: together they want three times the budget."""
_HOSTILE_LENGTH = 4 << 20

_STORES = json.dumps(
    {
        "count": 50,
        "stores": [
            {
                "store": {
                    "id": number,
                    "address": f"basic-tikv-{number}.basic-tikv-peer.honest.svc:20160",
                    "state_name": "Up",
                    "labels": [{"key": f"{label:0>300}", "value": "v" * 300} for label in range(95)],
                },
                "status": {"capacity": "1GiB"},
            }
            for number in range(1, 51)
        ],
    }
)
"""3 MB: less than a fourth of the budget, which is the share of each of four namespaces."""


def _announced(body: str) -> str:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def _chunked(body: str) -> str:
    return f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n"


def _until_closed(body: str) -> str:
    return f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"


_LIES = "x" * _HOSTILE_LENGTH

_WAYS: Mapping[str, tuple[str, int]] = {
    "stalls-announced": (_announced(_LIES), 1),
    "stalls-chunked": (_chunked(_LIES), 8),
    "stalls-until-closed": (_until_closed(_LIES), 0),
    "is-kept": (_chunked(_LIES), 0),
}
"""How hostile servers hold memory: an answer, and how many of its last bytes do not come."""


class _Hostile:
    """Syncs of hostile namespaces that hold as much of the budget as they get, and ask again when they are refused."""

    def __init__(
        self, way: str, budget: AnswerBudget, transport: HttpTransport, context: ssl.SSLContext | None = None
    ) -> None:
        self._text, self._left_out = _WAYS[way]
        self._is_slow = way.startswith("stalls")
        self._budget, self._transport, self._context = budget, transport, context
        self._ended = threading.Event()
        self._connections: list[socket.socket] = []
        self.failures: list[str] = []

    @contextlib.contextmanager
    def holding(self, readings: int) -> Iterator[None]:
        """Ask so many servers at once during the block."""
        with contextlib.ExitStack() as stack:
            ports = [stack.enter_context(serving(self._serve, self._context)) for _ in range(readings)]
            threads = [
                threading.Thread(target=self._sync, args=(_HOSTILE[number % len(_HOSTILE)], port))
                for number, port in enumerate(ports)
            ]
            for each in threads:
                each.start()
            try:
                yield
            finally:
                self._ended.set()
                for connection in self._connections:
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
                with self._budget.changed:
                    # the readings that wait end
                    self._budget.most *= len(ports)
                    self._budget.changed.notify_all()
                for each in threads:
                    each.join(10)

    def _serve(self, connection: socket.socket) -> None:
        """Answer, but for the last bytes, and wait for the client to go."""
        self._connections.append(connection)
        answers(self._text[: len(self._text) - self._left_out])(connection)
        connection.settimeout(0.05)
        while self._is_slow and not self._ended.is_set():
            try:
                connection.recv(1)
                break
            except TimeoutError:
                continue

    def _sync(self, namespace: str, port: int) -> None:
        asked = replace(get(port, 20.0, "https" if self._context else "http"), longest_answer=_HOSTILE_LENGTH)
        with asking_for(namespace):
            while not self._ended.is_set():
                shared = SharedAnswers()
                try:
                    shared.of(asked, self._transport.request)
                    # a reconcile that lasts
                    self._ended.wait(30)
                except TransportError as error:
                    self.failures.append(str(error))
                    self._ended.wait(0.05)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_the_answers_of_a_reconcile_end_with_it(budget: AnswerBudget, transports: list[HttpTransport]) -> None:
    gc.disable()
    try:
        with serving(answers(_announced(_STORES[:-1] + " " * SHORT + "}"))) as port:
            plane = DataPlane(lambda _tls: transports[0], OpenFence(), SystemClock()).for_one_reconcile()
            budget.most = 1 << 30
            plane.sharing.pd(Address(f"http://127.0.0.1:{port}")).stores()
            assert len(_STORES) + SHORT == budget.held
            del plane
            assert 0 == budget.held
    finally:
        gc.enable()


def _honest_stores(transport: HttpTransport, port: int, scheme: str) -> int:
    plane = DataPlane(lambda _tls: transport, OpenFence(), SystemClock()).for_one_reconcile()
    with asking_for("honest"):
        return len(plane.sharing.pd(Address(f"{scheme}://127.0.0.1:{port}")).stores())


@pytest.mark.slow
@pytest.mark.parametrize("framed", [_announced, _chunked])
@pytest.mark.parametrize(
    ("way", "scheme"), [*((way, "http") for way in _WAYS), ("stalls-chunked", "https"), ("is-kept", "https")]
)
def test_the_long_answer_of_an_honest_namespace_arrives_beside_hostile_ones(
    authority: Authority, way: str, scheme: str, framed: Callable[[str], str]
) -> None:
    budget = AnswerBudget(_ROOM)
    tls: TlsMaterial | None = authority.material("client") if scheme == "https" else None
    context = authority.server() if tls else None
    transport = HttpTransport({}, tls, budget)
    hostile = _Hostile(way, budget, transport, context)
    with hostile.holding(_READINGS), serving(answers(framed(_STORES)), context) as port:
        eventually(lambda: budget.held > _ROOM - 2 * SHORT, 10.0)
        assert [50] * 3 == [_honest_stores(transport, port, scheme) for _ in range(3)]
        assert budget.held <= _ROOM
    transport.close()
    gave_way = [each for each in hostile.failures if "its answer gave way to another" in each]
    assert gave_way


@pytest.mark.slow
def test_hostile_namespaces_hold_all_that_no_other_one_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that the test above cannot pass by itself."""
    monkeypatch.setattr(AnswerBudget, "_next_to_go", lambda *_: None)
    budget = AnswerBudget(_ROOM)
    transport = HttpTransport({}, budget=budget)
    hostile = _Hostile("is-kept", budget, transport)
    with hostile.holding(_ROOM // _HOSTILE_LENGTH), serving(answers(_chunked(_STORES))) as port:
        eventually(lambda: budget.held == _ROOM, 10.0)
        with asking_for("honest"), pytest.raises(AnswerRefused, match="no room for its answer"):
            transport.request(replace(get(port, 0.5), longest_answer=_HOSTILE_LENGTH))
    transport.close()


@pytest.mark.parametrize("framed", [_announced, _chunked, _until_closed])
def test_a_reading_that_gives_way_fails_at_once_and_says_why(framed: Callable[[str], str]) -> None:
    budget = AnswerBudget(_ROOM)
    transport = HttpTransport({}, budget=budget)
    text = framed("x" * _MOST)
    found: list[str] = []
    gone = threading.Event()

    def stalls(connection: socket.socket) -> None:
        # a whole number of pieces, so that nothing is left to find room for
        answers(text[: text.index("xxx") + _LENGTH])(connection)
        gone.wait(10)

    def read(port: int) -> None:
        with asking_for("mallory"), pytest.raises(AnswerRefused) as refused:
            transport.request(replace(get(port, 10.0), longest_answer=_MOST))
        found.append(str(refused.value))
        gone.set()

    with serving(stalls) as port:
        reading = threading.Thread(target=read, args=(port,))
        reading.start()
        eventually(lambda: _LENGTH == budget.held)
        budget.most = _LENGTH
        with asking_for("honest"):
            assert budget.room(lambda: None).take(SHORT, lambda: 10.0)
        reading.join(10)
    transport.close()
    assert ["its answer gave way to another" in each for each in found] == [True]


def test_among_equal_namespaces_the_latest_answer_gives_way(budget: AnswerBudget) -> None:
    """Readings that each hold a part would otherwise all wait until their deadline."""
    rooms = []
    for number in range(4):
        with asking_for(f"honest-{number}"):
            rooms.append(_taken(budget, _MOST // 4))
    assert not rooms[3].take(1, lambda: 0.0)
    assert not rooms[0].take(1, lambda: 0.0)
    assert [False, False, False, True] == [each.gives_way for each in rooms]
    rooms[3].close()
    assert all(each.take(1, lambda: 0.0) for each in rooms[:3])


@pytest.mark.parametrize("seed", range(60))
def test_each_namespace_gets_an_equal_part_however_the_others_ask(seed: int) -> None:
    """Random holders that free their bytes when asked, late or at once; only the last namespace asks for its part."""
    draw = SeededRandomness(seed)
    budget = AnswerBudget(1000)
    others = [f"other-{number}" for number in range(draw.integer(1, 6))]
    part = 1000 // (len(others) + 1)
    evicted: list[Room] = []

    def holding(namespace: str) -> Room:
        with asking_for(namespace):
            room = budget.room(lambda: evicted.append(room))
            return room

    held: Counter[str] = Counter()
    while budget.held < 1000:
        namespace = others[draw.integer(0, len(others) - 1)]
        count = min(draw.integer(1, 200), 1000 - budget.held)
        assert holding(namespace).take(count, lambda: 0.0)
        held[namespace] += count

    def free_one() -> float:
        """Stands for the time that passes until a reading ends."""
        if evicted:
            evicted.pop(draw.integer(0, len(evicted) - 1)).close()
            return 0.001
        return 0.0

    mine = [holding("honest") for _ in range(draw.integer(1, 3))]
    left = part
    while left:
        count = min(draw.integer(1, 50), left)
        assert mine[draw.integer(0, len(mine) - 1)].take(count, free_one)
        assert budget.held <= 1000
        left -= count
