"""The audit: counts requests and keeps the latest entries, so that tests can count an identity's writes."""

import threading
from collections import Counter, deque
from dataclasses import dataclass

from ports.transport import Request

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """A request as authorization sees it. `resource` is `plural.group`, empty for other paths."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    request: Request

    @property
    def is_write(self) -> bool:
        """True if the request may change something."""
        return self.verb in _WRITES and "dryRun=" not in self.request.url


@dataclass(frozen=True, slots=True)
class Entry:
    """An answered request; `code` is 0 if the answer was lost."""

    call: Call
    code: int


class Audit:
    """Counts all requests and keeps the latest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str, str, str, str, int]] = Counter()
        self._recent: deque[Entry] = deque(maxlen=_KEPT)

    def record(self, call: Call, code: int) -> None:
        """Record an answer."""
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
        """The number of requests that match all given criteria."""
        wanted = (user, verb, resource, None, namespace, name, code)
        with self._lock:
            return sum(
                number
                for key, number in self._counts.items()
                if all(want is None or want == have for want, have in zip(wanted, key, strict=True))
            )

    def writes(self, user: str | None = None) -> int:
        """The number of requests of a user (None: all) that could change something, including refused ones."""
        return sum(self.count(user=user, verb=verb) for verb in _WRITES)

    def recent(self) -> list[Entry]:
        """The latest entries, oldest first."""
        with self._lock:
            return list(self._recent)

    def clear(self) -> None:
        """Reset the counters."""
        with self._lock:
            self._counts.clear()
            self._recent.clear()
