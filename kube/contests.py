"""What is undone as often as it is written: by another controller, or by an admission webhook (better than v1.6).

To write it at once, again and again, would end nothing and keep both busy. The first times it is, since a hand may have
slipped; then once a minute, and whoever reconciles hears of it, to say so. What is deleted as often as it is created is
alike, and stops the stage that needs it.
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
"""Times that the same is written to an object without a pause."""

EVERY = 60.0
"""Seconds between two writes of what is contested; after twice as many without one it is not contested any more."""

LATELY = 600.0
"""Seconds for which a write is remembered."""


class DeletedEachTime(Exception):
    """Raised instead of creating what others have deleted each time; `look_again`: after how many seconds to try."""

    def __init__(self, what: str, look_again: float) -> None:
        super().__init__(f"{what} is deleted each time that it is created; it is created once a minute")
        self.look_again = look_again


@dataclass(frozen=True, slots=True)
class Contested:
    """A field of an object that others change back; after how many seconds to look at it again."""

    what: str
    look_again: float


def sentence(contested: Sequence[Contested]) -> str:
    """What is contested, as a status says it."""
    first, more = contested[0].what, len(contested) - 1
    what = f"{first} (and {more} more)" if more else first
    return f"{what}: another client, or an admission webhook, undoes this each time; it is set once a minute"


@dataclass(slots=True)
class _Written:
    """The last difference written to an object, how often in a row, when last; and what is contested, if it is."""

    digest: bytes
    times: int
    at: float
    contested: str = ""


_FOUND: ContextVar[list[Contested] | None] = ContextVar("contested", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[Contested]]:
    """What the work inside finds contested, in this thread."""
    found: list[Contested] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


class Contests:
    """What was written lately, to tell when it is written in vain. Safe for use by many threads."""

    def __init__(self, clock: Clock, observes: Callable[[], bool]) -> None:
        """`observes`: whether what seems to be written is not."""
        self._clock = clock
        self._observes = observes
        self._lock = threading.Lock()
        self._written: OrderedDict[str, _Written] = OrderedDict()

    def allows(self, resource: Resource, cached: Object, patch: Json) -> bool:
        """Whether a difference may be written now; not so soon again when it has come back after each write."""
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
        """Raise DeletedEachTime for what was created several times lately, the last time less than a minute ago."""
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
        """Note an object that was created."""
        self._note(_whose(resource, desired), b"")

    def agreed(self, cached: Object) -> None:
        """Note that there is no difference; after a contest it may come back."""
        if found := self._contested(cached):
            _tell(found)

    def involves(self, cached: Object) -> bool:
        """Whether something of an object is contested."""
        return self._contested(cached) is not None

    def _contested(self, cached: Object) -> Contested | None:
        """What is contested of an object until it has not been written for long enough."""
        last = self._written.get(cached.metadata.uid)
        left = last.at + 2 * EVERY - self._clock.now() if last else 0.0
        return Contested(last.contested, left) if last and last.contested and left > 0 else None

    def wrote(self, cached: Object, patch: Json) -> None:
        """Note a difference that was written."""
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
    """An object by its name, and by its owner, who may have been made anew."""
    meta = desired["metadata"]
    owners = [each["uid"] for each in meta.get("ownerReferences") or ()]
    return " ".join((str(resource), meta.get("namespace", ""), meta["name"], *owners))


def _tell(contested: Contested) -> None:
    # it is held back for a while only
    effects.note()
    if (found := _FOUND.get()) is not None:
        found.append(contested)
