"""Contests: writes that another controller or an admission webhook undoes each time (better than v1.6).

Repeating the write immediately would keep both sides busy forever. The operator writes it immediately a few times, in
case of a user's slip, then once a minute, and reports the contest to the reconcile. An object that is deleted each time
it is created is handled alike and stops the stage that needs it.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace

import msgspec

from kube.field_change import first_patched
from kube.objects import Json, Object, digest
from kube.resources import Resource
from ports import effects
from ports.ageing import Ageing, Entry
from ports.clock import Clock
from ports.lazy_log import get_logger
from ports.pace import Pace

_log = get_logger(__name__)

PACE = Pace(60.0, 60.0, at_once=3)
"""The same change is written three times without a pause, then once a minute. After twice as long without a write the
contest is over.
"""

_TIME = re.compile(r'"\d{4}-\d\d-\d\dT[\d:.]+Z"')

BACK_AND_FORTH = 6
"""How often the operator itself alternates between two changes without a pause, e.g. if a server's answers vary."""

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
    """The last difference written to an object, and how often it was written in a row; the contested field, if any.

    `before` is another difference that was written just before, and `turns` the alternations between the two.
    """

    digest: bytes
    times: int
    contested: str = ""
    before: bytes = b""
    turns: int = 0

    def is_contested(self, what: bytes) -> bool:
        """True if a difference has been written too often without a pause."""
        if what == self.digest:
            return bool(PACE.after(self.times)) or self.turns >= BACK_AND_FORTH
        return what == self.before and self.turns >= BACK_AND_FORTH


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
    """Remembers recent writes, to recognise those that are undone. Thread-safe.

    Without it a Service is patched 60 times in a minute, not 3 times (bench/memories.json). After a restart a contested
    change is written three times at once again.
    """

    def __init__(self, clock: Clock, observes: Callable[[], bool]) -> None:
        """`observes` returns True if writes are not really sent."""
        self._clock = clock
        self._observes = observes
        self._lock = threading.Lock()
        self._written: Ageing[str, _Written] = Ageing(LATELY)

    def allows(self, resource: Resource, cached: Object, patch: Json) -> bool:
        """True if a difference may be written now; False during the pause of a contest."""
        uid, name, now = cached.metadata.uid, cached.metadata.name, self._clock.now()
        with self._lock:
            last = self._written.entry(uid, now)
            if last is None or not last.value.is_contested(_digest(patch)):
                return True
            if not last.value.contested:
                change = str(first_patched(cached.decode(), patch))
                last.value.contested = f"{resource.kind} {name}: {change}"
                _log.warning("what is written is undone", kind=resource.kind, name=name, change=change)
        pause = _pause(last, now)
        _tell(Contested(last.value.contested, pause if pause > 0 else PACE.longest))
        return pause <= 0

    def require_creation(self, resource: Resource, desired: Json) -> None:
        """Raise DeletedEachTime for an object that was created repeatedly, the last time less than a minute ago."""
        name, now = desired["metadata"]["name"], self._clock.now()
        with self._lock:
            last = self._written.entry(_whose(resource, desired), now)
            if last is None or not PACE.after(last.value.times):
                return
            if not last.value.contested:
                last.value.contested = f"{resource.kind} {name}"
                _log.warning("what is created is deleted", kind=resource.kind, name=name)
        if (pause := _pause(last, now)) > 0:
            raise DeletedEachTime(last.value.contested, pause)

    def created(self, resource: Resource, desired: Json) -> None:
        """Record that an object was created."""
        self._note(_whose(resource, desired), b"")

    def wrote(self, cached: Object, patch: Json) -> None:
        """Record a difference that was written."""
        self._note(cached.metadata.uid, _digest(patch))

    def agreed(self, cached: Object) -> None:
        """Report a contest that is not over yet, although the object now agrees."""
        if found := self._contested(cached):
            _tell(found)

    def involves(self, cached: Object) -> bool:
        """True if a field of the object is contested."""
        return self._contested(cached) is not None

    def _contested(self, cached: Object) -> Contested | None:
        """The contest about an object, until no write has been needed for long enough."""
        now = self._clock.now()
        last = self._written.entry(cached.metadata.uid, now)
        left = last.at + 2 * PACE.longest - now if last else 0.0
        return Contested(last.value.contested, left) if last and last.value.contested and left > 0 else None

    def _note(self, key: str, what: bytes) -> None:
        if self._observes():
            return
        now = self._clock.now()
        with self._lock:
            last = self._written.get(key, now)
            if last is None:
                found = _Written(what, 1)
            elif last.digest == what:
                found = replace(last, times=last.times + 1)
            elif last.before == what:
                found = replace(last, digest=what, before=last.digest, times=1, turns=last.turns + 1)
            else:
                found = _Written(what, 1, before=last.digest)
            self._written.note(key, found, now)


def _pause(last: Entry[_Written], now: float) -> float:
    return last.at + (PACE.longest if last.value.turns >= BACK_AND_FORTH else PACE.after(last.value.times)) - now


def _digest(patch: Json) -> bytes:
    """The digest of a difference without times, e.g. in an annotation that says since when."""
    return digest(_TIME.sub('"time"', msgspec.json.encode(patch, order="sorted").decode()))


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
