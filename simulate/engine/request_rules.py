"""Rules for clients of a server in trouble: obey Retry-After, and back off between retries (R13)."""

from collections import deque
from collections.abc import Callable

from ports.clock import Clock
from ports.transport import Response
from simulate.engine.calls import Call, Port

_FAILURES = 10
"""Consecutive failures after which a key may be retried once per second, and the size of a burst."""

_Sent = tuple[str, str, str, bytes | None]


class RequestRules:
    """The rules for all operators of a run. `report` receives violations."""

    def __init__(self, clock: Clock, report: Callable[[str], None]) -> None:
        self._clock = clock
        self._report = report
        self._not_before: dict[_Sent, float] = {}
        self._failed_at: dict[tuple[str, str], deque[float]] = {}

    def forget(self, actor: str) -> None:
        """Forget a process that was replaced."""
        self._not_before = {key: due for key, due in self._not_before.items() if key[0] != actor}
        self._failed_at = {key: tries for key, tries in self._failed_at.items() if key[0] != actor}

    def asking(self, call: Call) -> None:
        """Check a request before it is sent."""
        early = self._not_before.pop(_sent(call), 0.0) - self._clock.now()
        if early > 0:
            self._report(f"{call} is sent again {early:.3f} s before Retry-After has passed")

    def answered(self, call: Call, answer: Response) -> None:
        """Record an answer."""
        seconds = answer.headers.get("retry-after")
        if seconds is not None and call.port is Port.KUBERNETES:
            self._not_before[_sent(call)] = self._clock.now() + float(seconds)

    def synced(self, actor: str, key: str, failed: bool) -> None:
        """Record the end of a sync that sent a request."""
        if not failed:
            self._failed_at.pop((actor, key), None)
            return
        now, tries = self._clock.now(), self._failed_at.setdefault((actor, key), deque(maxlen=2 * _FAILURES))
        tries.append(now)
        if len(tries) == 2 * _FAILURES and now - tries[-_FAILURES] < _FAILURES - 1:
            self._report(f"{key} is tried {_FAILURES} times in {now - tries[-_FAILURES]:.3f} s, and fails each time")


def _sent(call: Call) -> _Sent:
    return call.actor, call.method, call.request.url, call.request.body
