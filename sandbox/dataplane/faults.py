"""Faults of the data plane's network (reliability.md FP5, dataplane-apis.md 15.4)."""

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from ports.transport import Request


class Trouble(Enum):
    """What a fault does to a connection or a request."""

    REFUSE = "refuse"
    BLACK_HOLE = "black-hole"
    SLOW = "slow"
    ANSWER = "answer"
    TRUNCATE = "truncate"
    OLD = "old"
    LOSE_ANSWER = "lose-answer"


@dataclass(frozen=True, slots=True)
class Fault:
    """One trouble for the connections it matches. Globs: `target` and `origin` on `namespace/pod`, `path` on the path.

    SLOW adds `seconds`: a GET is answered with what was so when it was sent, anything else has its effect at the end,
    also when its sender waits no more. ANSWER gives `status` and `body` without asking the process; TRUNCATE ends the
    body half-way; OLD repeats the first answer that the same GET got under the fault; LOSE_ANSWER breaks the connection
    after the request was carried out. `every`: it applies to each n-th matching request only. A fault with a `method`
    or a `path` applies to HTTP requests only, any other to every connection.
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

    def matches_connection(self, origin: str, target: str, port: int) -> bool:
        """Whether it keeps two ends apart, whatever is asked."""
        return (
            self.trouble in (Trouble.REFUSE, Trouble.BLACK_HOLE)
            and self.method == self.path == "*"
            and self._between(origin, target, port)
        )

    def matches_request(self, origin: str, target: str, port: int, request: Request, path: str) -> bool:
        """Whether it applies to a request."""
        return (
            self._between(origin, target, port)
            and fnmatchcase(request.method, self.method)
            and fnmatchcase(path, self.path)
        )

    def _between(self, origin: str, target: str, port: int) -> bool:
        return self.port in (None, port) and fnmatchcase(target, self.target) and fnmatchcase(origin, self.origin)
