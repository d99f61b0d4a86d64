"""Faults of single requests of the operator (FP1, FP4, FP5): by number, or at random."""

from collections.abc import Callable, Collection, Iterable

import msgspec

from ports.randomness import SeededRandomness
from ports.transport import Response
from simulate.engine import plan
from simulate.engine.calls import Call
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


class RequestFaults:
    """The faults of one run, with a separate random draw, so that draws of the world do not affect it.

    `now` returns the time in seconds.
    """

    def __init__(self, faults: Iterable[plan.Fault], seed: int, now: Callable[[], float]) -> None:
        self._now = now
        self._by_write: dict[Address, ByWrite] = {}
        self._denied_until: dict[str, float] = {}
        for each in faults:
            if isinstance(each, ByWrite) and (where := address(each)):
                self._by_write.setdefault(where, each)
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
