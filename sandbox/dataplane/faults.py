"""Faults of the data plane's network (reliability.md FP5, dataplane-apis.md 15.4)."""

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from ports.transport import Request


class Trouble(Enum):
    """The effect of a fault on a connection or a request."""

    REFUSE = "refuse"
    BLACK_HOLE = "black-hole"
    SLOW = "slow"
    ANSWER = "answer"
    TRUNCATE = "truncate"
    OLD = "old"
    LOSE_ANSWER = "lose-answer"
    LIE = "lie"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the connections that it matches. Globs: `target` and `origin` on `namespace/pod`, `path` on the path.

    SLOW adds `seconds`: a GET returns the state at its sending, any other request takes effect at the end, even after
    its sender has given up. ANSWER returns `status` and `body` without the process. TRUNCATE cuts the body in half; OLD
    repeats the first answer to the same GET under the fault; LOSE_ANSWER breaks the connection after the request took
    effect. LIE answers a GET with a `lie` of `sandbox.dataplane.lies` about the pod `about`.

    `every` limits the fault to each n-th matching request. A fault with a `method` or `path` applies only to
    HTTP requests, any other to every connection.
    """

    trouble: Trouble
    target: str = "*"
    origin: str = "*"
    port: int | None = None
    method: str = "*"
    path: str = "*"
    seconds: float = 0.0
    status: int = 500
    body: bytes = b""
    every: int = 1
    lie: str = ""
    about: str = ""

    def matches_connection(self, origin: str, target: str, port: int) -> bool:
        """True if it separates two ends for every request."""
        return (
            self.trouble in (Trouble.REFUSE, Trouble.BLACK_HOLE)
            and self.method == self.path == "*"
            and self._between(origin, target, port)
        )

    def matches_request(self, origin: str, target: str, port: int, request: Request, path: str) -> bool:
        """True if it applies to a request."""
        return (
            self._between(origin, target, port)
            and fnmatchcase(request.method, self.method)
            and fnmatchcase(path, self.path)
        )

    def _between(self, origin: str, target: str, port: int) -> bool:
        return self.port in (None, port) and fnmatchcase(target, self.target) and fnmatchcase(origin, self.origin)
