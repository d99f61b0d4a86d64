"""What lies of servers may cost (docs/security.md, data planes).

A lie of one member or server never costs data or a quorum. A lie of the whole of PD, which is the authority on its
database, may cost that database; it never makes the operator raise an exception, write without end, or touch another
cluster.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator

from controllers.conditions import PROGRESSING
from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS, EVENTS
from simulate.engine.calls import Call, Port
from simulate.engine.engine import Engine
from simulate.engine.plan import Lying
from simulate.engine.worlds import NAMESPACE

_OF_AUTHORITIES = frozenset({"O7", "R13", "neighbour", "lies", "alternation"})
"""The rules that hold for every liar."""
_DESTRUCTIVE = frozenset(
    {"I1", "I2", "I3", "I3-pump", "I4", "I5", "I6", "I7", "I8", "I9", "I21", "I22", "I23", "I30", "I43", "I46"}
)
"""The rules about data and quorums. The others are about the order of a change, which a lie may upset."""
_AFTERWARDS = frozenset({"O3", "O10"})

_WINDOW = 60.0
_AT_FIRST = 90.0
"""Seconds from the beginning of a lie, or of a change under it, in which the operator may react to it."""
_MOST, _MOST_ALIKE = 150, 60
"""The writes of a minute, and those with the same method and target, that no change exceeds. A roll of five members of
PD in ten seconds writes the status 22 times, and 45 times with a false member in PD's reports."""
_MOST_ALIKE_TO_SERVERS = 12
"""The same for requests to the data plane."""
_POLLS = "captures/drain"
"""The write that is also a question: TiCDC answers nothing else about how many tables a capture still has."""
_NAMES_A_SERVER = re.compile(r"\b(PD|DM)\b|\bcontradict|\b[a-z]+(-[a-z]+)+-\d+\b")
_MOST_ALIKE_LATER = 20
"""The same once the operator has seen that answers change back and forth."""


def is_judged(rule: str, lying: Lying) -> bool:
    """True if a violation of a rule counts against the operator."""
    if rule in _OF_AUTHORITIES:
        return True
    return not lying.authority and rule in _DESTRUCTIVE | _AFTERWARDS


class LieJudge:
    """Counts the operator's writes while servers lie, and watches the other clusters."""

    def __init__(self, engine: Engine, lying: Lying, report: Callable[[str], None]) -> None:
        self._engine, self._lying, self._report = engine, lying, report

    def follow(self, seconds: float) -> None:
        """Let the world run, and report more writes than a minute may have."""
        seen, recent = len(self._engine.calls), deque[tuple[float, Call]]()
        end = self._engine.elapsed + seconds
        while self._engine.elapsed < end:
            self._engine.run(min(5.0, end - self._engine.elapsed))
            now = self._engine.elapsed
            recent.extend((now, call) for call in self._engine.calls[seen:])
            seen = len(self._engine.calls)
            while recent and recent[0][0] < now - _WINDOW:
                recent.popleft()
            self._count([each for _, each in recent], now)
            self._require_a_cause(now)

    def _require_a_cause(self, now: float) -> None:
        """Report a condition about a wait that has lasted, but whose message leads the user to no server."""
        if not self._lying.begins + _AT_FIRST <= now < self._lying.ends:
            return
        for told in self._progress():
            if told.get("status") == "True" and not _NAMES_A_SERVER.search(told["message"]):
                self._report(f"the condition names no server: {told['reason']}: {told['message']}")

    def _progress(self) -> Iterator[Json]:
        """The conditions of the clusters about which servers lie."""
        yield self._engine.condition(PROGRESSING)
        for item in self._engine.admin.list_page(DM_CLUSTERS, NAMESPACE).items:
            yield condition_of((item.decode().get("status") or {}).get("conditions") or (), PROGRESSING)

    def _count(self, calls: list[Call], now: float) -> None:
        calls = [call for call in calls if call.target.resource != str(EVENTS)]
        if len(calls) > _MOST:
            self._report(f"more than {_MOST} writes in a minute")
        is_later = self._lying.begins + _AT_FIRST + _WINDOW <= now < self._lying.ends
        most = _MOST_ALIKE_LATER if is_later else _MOST_ALIKE
        self._count_alike([call for call in calls if call.port is Port.KUBERNETES], most)
        to_servers = [call for call in calls if call.port is Port.DATA_PLANE]
        self._count_alike([server for server in to_servers if _POLLS in str(server)], _MOST_ALIKE)
        self._count_alike([server for server in to_servers if _POLLS not in str(server)], _MOST_ALIKE_TO_SERVERS)

    def _count_alike(self, calls: list[Call], most: int) -> None:
        for what, count in Counter(map(str, calls)).items():
            if count > most:
                self._report(f"{what} more than {most} times in a minute")
