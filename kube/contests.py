"""Contests: writes that another controller or an admission webhook undoes each time (better than v1.6).

Repeating the write immediately would keep both sides busy forever. The operator writes it immediately a few times, in
case of a user's slip, then once a minute, and reports the contest to the reconcile. An object that is deleted each time
it is created is handled alike and stops the stage that needs it.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import structlog

from kube.field_change import first_patched
from kube.objects import Json, Object, digest
from kube.resources import Resource
from ports import effects
from ports.clock import Clock

_log = structlog.get_logger(__name__)

AT_ONCE = 3
"""How often the same change is written without a pause."""

EVERY = 60.0
"""Seconds between two writes of a contested change. After twice as long without a write the contest is over."""

LATELY = 600.0
"""Seconds for which a write is remembered."""


class DeletedEachTime(Exception):
    """Raised instead of creating an object that is deleted each time; `look_again` is the seconds until the
    next try.
    """

    def __init__(self, what: str, look_again: float) -> None:
        super().__init__(f"{what} is deleted each time that it is created; it is created once a minute")
        self.look_again = look_again


@dataclass(frozen=True, slots=True)
class Contested:
    """A field that another client changes back, and the seconds until the next check."""

    what: str
    look_again: float


def sentence(contested: Sequence[Contested]) -> str:
    """The sentence about a contest in a status."""
    first, more = contested[0].what, len(contested) - 1
    what = f"{first} (and {more} more)" if more else first
    return f"{what}: another client, or an admission webhook, undoes this each time; it is set once a minute"


@dataclass(slots=True)
class _Written:
    """The last difference written to an object, how often it was written in a row and when; and the contested field, if
    any.
    """

    digest: bytes
    times: int
    at: float
    contested: str = ""


_FOUND: ContextVar[list[Contested] | None] = ContextVar("contested", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[Contested]]:
    """Collect the contests that this thread meets within the block."""
    found: list[Contested] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


class Contests:
    """Remembers recent writes, to recognise those that are undone. Thread-safe."""

    def __init__(self, clock: Clock, observes: Callable[[], bool]) -> None:
        """`observes` returns True if writes are not really sent."""
        self._clock = clock
        self._observes = observes
        self._lock = threading.Lock()
        self._written: OrderedDict[str, _Written] = OrderedDict()

    def allows(self, resource: Resource, cached: Object, patch: Json) -> bool:
        """True if a difference may be written now; False during the pause of a contest."""
        with self._lock:
            last = self._written.get(cached.metadata.uid)
            if last is None or last.times < AT_ONCE or last.digest != digest(patch):
                return True
            if not last.contested:
                change = str(first_patched(cached.decode(), patch))
                last.contested = f"{resource.kind} {cached.metadata.name}: {change}"
                _log.warning("what is written is undone", kind=resource.kind, name=cached.metadata.name, change=change)
            pause = last.at + EVERY - self._clock.now()
        _tell(Contested(last.contested, pause if pause > 0 else EVERY))
        return pause <= 0

    def require_creation(self, resource: Resource, desired: Json) -> None:
        """Raise DeletedEachTime for an object that was created repeatedly, the last time less than a minute ago."""
        with self._lock:
            last = self._written.get(_whose(resource, desired))
            if last is None or last.times < AT_ONCE:
                return
            if not last.contested:
                last.contested = f"{resource.kind} {desired['metadata']['name']}"
                _log.warning("what is created is deleted", kind=resource.kind, name=desired["metadata"]["name"])
            pause = last.at + EVERY - self._clock.now()
        if pause > 0:
            raise DeletedEachTime(last.contested, pause)

    def created(self, resource: Resource, desired: Json) -> None:
        """Record that an object was created."""
        self._note(_whose(resource, desired), b"")

    def agreed(self, cached: Object) -> None:
        """Report a contest that is not over yet, although the object now agrees."""
        if found := self._contested(cached):
            _tell(found)

    def involves(self, cached: Object) -> bool:
        """True if a field of the object is contested."""
        return self._contested(cached) is not None

    def _contested(self, cached: Object) -> Contested | None:
        """The contest about an object, until no write has been needed for long enough."""
        last = self._written.get(cached.metadata.uid)
        left = last.at + 2 * EVERY - self._clock.now() if last else 0.0
        return Contested(last.contested, left) if last and last.contested and left > 0 else None

    def wrote(self, cached: Object, patch: Json) -> None:
        """Record a difference that was written."""
        self._note(cached.metadata.uid, digest(patch))

    def _note(self, key: str, what: bytes) -> None:
        if self._observes():
            return
        now = self._clock.now()
        with self._lock:
            last = self._written.pop(key, None)
            if last is None or last.digest != what or last.at <= now - LATELY:
                last = _Written(what, 0, now)
            self._written[key] = _Written(what, last.times + 1, now, last.contested)
            while next(iter(self._written.values())).at <= now - LATELY:
                self._written.popitem(last=False)


def _whose(resource: Resource, desired: Json) -> str:
    """An object's name together with its owner, which may have been recreated."""
    meta = desired["metadata"]
    owners = [each["uid"] for each in meta.get("ownerReferences") or ()]
    return " ".join((str(resource), meta.get("namespace", ""), meta["name"], *owners))


def _tell(contested: Contested) -> None:
    # the result depends on the time: the change is held back only for a while
    effects.note()
    if (found := _FOUND.get()) is not None:
        found.append(contested)
