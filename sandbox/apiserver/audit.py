"""Who asked for what: counters and the latest entries, so that a test can count the writes of an identity."""

import threading
from collections import Counter, deque
from dataclasses import dataclass

from ports.transport import Request

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """One request as authorization would see it. `resource` is `plural.group`, empty for a path that is no resource."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    request: Request

    @property
    def is_write(self) -> bool:
        """Whether the request may change something."""
        return self.verb in _WRITES and "dryRun=" not in self.request.url


@dataclass(frozen=True, slots=True)
class Entry:
    """One answered request; `code` is 0 when the answer was lost."""

    call: Call
    code: int


class Audit:
    """Counts all requests and keeps the latest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str, str, str, str, int]] = Counter()
        self._recent: deque[Entry] = deque(maxlen=_KEPT)

    def record(self, call: Call, code: int) -> None:
        """Remember an answer."""
        key = (call.user, call.verb, call.resource, call.subresource, call.namespace, call.name, code)
        with self._lock:
            self._counts[key] += 1
            self._recent.append(Entry(call, code))

    def count(
        self,
        *,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        code: int | None = None,
    ) -> int:
        """The number of requests that agree with everything given."""
        wanted = (user, verb, resource, None, namespace, name, code)
        with self._lock:
            return sum(
                number
                for key, number in self._counts.items()
                if all(want is None or want == have for want, have in zip(wanted, key, strict=True))
            )

    def writes(self, user: str | None = None) -> int:
        """The number of requests of a user (None: of all) that could change something, refused ones included."""
        return sum(self.count(user=user, verb=verb) for verb in _WRITES)

    def recent(self) -> list[Entry]:
        """The latest entries, oldest first."""
        with self._lock:
            return list(self._recent)

    def clear(self) -> None:
        """Start counting anew."""
        with self._lock:
            self._counts.clear()
            self._recent.clear()
