"""Earlier answers and decisions, reused while their inputs are unchanged (docs/adr/0012).

A reconcile every half minute asks the data plane what a cluster at rest is like. If the answers and the caches are as
before, the decision is unchanged.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from kube.objects import Json, Object
from kube.reading import Readings
from member.outcome import Done, Outcome, first_retry
from ports.ageing import Entry
from ports.clock import Clock

T = TypeVar("T")

LONGEST: Final = 300.0
"""Seconds after which everything is asked and decided again, even on unchanged inputs."""


class KeptAnswer(Generic[T]):
    """The last answer to a question whose answer seldom changes. Not thread-safe."""

    def __init__(self) -> None:
        self._last: Entry[tuple[object, T]] | None = None

    def of(self, cause: object, clock: Clock, ask: Callable[[], T], lasts: float = LONGEST) -> T:
        """The answer given to an equal `cause` within the last `lasts` seconds, or else the result of `ask`.

        Raises what `ask` raises.
        """
        now = clock.now()
        last = self._last
        if last is None or last.value[0] != cause or not last.is_fresh(now, lasts):
            last = self._last = Entry((cause, ask()), now, now)
        return last.value[1]


@dataclass(frozen=True, slots=True)
class _Decision:
    seen: bytes
    readings: Readings
    outcomes: Mapping[str, Outcome]
    until: float


class Decided:
    """The last decision, if it was to do nothing. Not thread-safe."""

    def __init__(self) -> None:
        self._last: _Decision | None = None

    def on(self, seen: bytes, clock: Clock) -> Mapping[str, Outcome] | None:
        """The outcomes on the same answers of the data plane, if the caches are unchanged; otherwise None."""
        last = self._last
        if last is None or last.seen != seen or clock.now() >= last.until or not last.readings.still_hold():
            return None
        return last.outcomes

    def nothing_to_do(self, seen: bytes, readings: Readings, outcomes: Mapping[str, Outcome], clock: Clock) -> None:
        """Keep the outcomes with the inputs they depend on, if every stage is done."""
        if all(isinstance(outcome, Done) for outcome in outcomes.values()):
            # an outcome may depend on a time that no input shows, e.g. the end of a certificate
            holds_for = min(LONGEST, first_retry(outcomes.values()) or LONGEST)
            self._last = _Decision(seen, readings, dict(outcomes), clock.now() + holds_for)
        else:
            self.forget()

    def forget(self) -> None:
        """Decide again in the next reconcile."""
        self._last = None


class Settled:
    """Cached objects that a comparison found equal to the desired ones. Not thread-safe.

    A cached object is immutable: a new version is a new object. A comparison is repeated only for a new object or a new
    wish.
    """

    def __init__(self) -> None:
        # weak keys: an object that the cache drops is forgotten
        self._known: WeakKeyDictionary[Object, dict[Hashable, bytes]] = WeakKeyDictionary()

    def holds(self, comparison: Hashable, cached: Object, desired: Json) -> bool:
        """True if this comparison found this object equal to `desired`."""
        settled = self._known.get(cached, {}).get(comparison)
        return settled is not None and settled == msgspec.json.encode(desired)

    def note(self, comparison: Hashable, cached: Object, desired: Json) -> None:
        """Record that this comparison found the object equal to `desired`."""
        # the encoded text takes a tenth of the memory of the tree
        self._known.setdefault(cached, {})[comparison] = msgspec.json.encode(desired)
