"""Faults of single requests (FP1, FP4, FP5), by number or at random, and the rules for clients that meet them (R13).

A client obeys Retry-After, and backs off between retries.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable

import msgspec

from ports.clock import Clock
from ports.randomness import SeededRandomness
from ports.transport import Response
from simulate.engine import plan
from simulate.engine.calls import Call, Port
from simulate.engine.write_addresses import Address, address

RequestFault = plan.Crash | plan.Refused | plan.Lost
ByWrite = RequestFault | plan.Denied
"""Faults that wait for a write, and decide about it."""

_REASONS = {
    403: "Forbidden",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_FAILURES = 10
"""Consecutive failures after which a key may be retried once per second, and the size of a burst."""
_Sent = tuple[str, str, str, bytes | None]


class RequestFaults:
    """The faults of one run, with a separate random draw, so that draws of the world do not affect it.

    `now` returns the time in seconds.
    """

    def __init__(self, faults: Iterable[plan.Fault], seed: int, now: Callable[[], float]) -> None:
        self._now = now
        self._by_write: dict[Address, ByWrite] = {}
        self._denied_until: dict[str, float] = {}
        for fault in faults:
            if isinstance(fault, ByWrite) and (where := address(fault)):
                self._by_write.setdefault(where, fault)
        self._lot = SeededRandomness(f"request faults {seed}")
        self.troubles: list[plan.Trouble] = []
        """The currently active troubles."""

    def of(self, addresses: Collection[Address], call: Call) -> RequestFault | None:
        """The fault of a request; `addresses` are a write's, empty for a read."""
        found = next((self._by_write[each] for each in addresses if each in self._by_write), None)
        if isinstance(found, plan.Denied):
            self._denied_until[call.like] = self._now() + found.seconds
        elif found is not None:
            return found
        if self._now() < self._denied_until.get(call.like, 0.0):
            return plan.Refused(at=0.0, code=403)
        for trouble in self.troubles:
            if trouble.port == call.port.value and self._lot.integer(1, 100) <= trouble.percent:
                return _fault_of(trouble)
        return None


def _fault_of(trouble: plan.Trouble) -> RequestFault:
    if trouble.code:
        return plan.Refused(at=0.0, code=trouble.code, retry_after=trouble.retry_after)
    return plan.Lost(at=0.0)


def refusal(fault: plan.Refused, call: Call) -> Response:
    """The refusal in place of the effect."""
    reason = _REASONS.get(fault.code, "InternalError")
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": f"simulated: {reason} for {call}",
        "code": fault.code,
    }
    headers = {"content-type": "application/json"}
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    return Response(fault.code, headers, msgspec.json.encode(status))


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
