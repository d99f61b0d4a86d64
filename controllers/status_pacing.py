"""When a status is written: what counts at once; what goes back and forth, or is a detail, now and then only (I29).

While a cluster comes up, or rolls, some number in its status changes many times a second: those wait for the next write
that counts, or for a short while.

A node that comes and goes takes the status of what runs on it to what it was before, again and again, and each time
that would be a write for every cluster that has a pod there. With several nodes, the mixtures are new each time. So
once a status is seen to come and go, its writes keep a distance: a real loss shows at the end of it, and what is over
by then needs no write. While a component is upgraded or scaled, new steps show at once all the same, and so does each
record of failover.
"""

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass

from kube.objects import Json, digest
from ports.clock import Clock

LATELY = 600.0
"""Seconds for which a status is remembered."""

OFTEN = 3
"""Returns to an earlier status, in that time, that no operation needs."""

APART = 5.0
"""Seconds within which several returns are one: much happens at once when something starts."""

EVERY = 20.0
"""Seconds between two writes of a status that goes back and forth: three in a minute."""

DETAILS_EVERY = 10.0
"""Seconds for which one write is earned that brings nothing but details: a cluster that comes up brings what counts
about as often."""

DETAILS_SAVED = 30.0
"""So many of them can be saved up: what changes after a quiet time shows at once."""

_REMEMBERED = 64

_UNSTEADY = ("time", "count", "generation")
"""Ends of the names of fields that differ each time, whatever happens."""


@dataclass(frozen=True, slots=True)
class StatusFields:
    """What the fields of a status are worth to those who read it.

    `details` are observed in each reconcile, and show in `phase` or a condition as soon as they matter. `records` are
    read by the next reconcile, so they are written at once. `resting` is the value of `phase` that means no operation.
    """

    details: Collection[str] = ()
    records: Collection[str] = ()
    resting: str = ""


ALL_ALIKE = StatusFields()
"""Every field counts the same."""


class StatusPacing:
    """When the status of one object may be written, from what it has been lately. For one thread at a time."""

    def __init__(self, clock: Clock, fields: StatusFields = ALL_ALIKE) -> None:
        self._clock, self._fields = clock, fields
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._returns: deque[float] = deque()
        self._written = clock.now() - EVERY
        self._saved, self._saved_at = 0.0, clock.now()

    def pause(self, stored: Json, status: Json) -> float:
        """Seconds until a status may be written in the place of the `stored` one; 0 when it may be now."""
        self._forget()
        fields = self._fields
        details = max((1.0 - self._details()) * DETAILS_EVERY, 0.0) if _only_details(stored, status, fields) else 0.0
        if len(self._returns) < OFTEN or _records(stored, fields) != _records(status, fields):
            return details
        if _is_operated_on(fields, stored, status) and _shape(status) not in self._seen:
            return details
        return max(self._written + EVERY - self._clock.now(), details, 0.0)

    def wrote(self, stored: Json, status: Json) -> None:
        """Note a write, in the place of the `stored` status."""
        if _only_details(stored, status, self._fields):
            self._saved, self._saved_at = self._details() - 1.0, self._clock.now()
        now, shape = self._clock.now(), _shape(status)
        self._written = now
        is_return = shape in self._seen and shape != next(reversed(self._seen))
        if is_return and (not self._returns or now - self._returns[-1] >= APART):
            self._returns.append(now)
        self._seen[shape] = now
        self._seen.move_to_end(shape)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _details(self) -> float:
        """Writes of details that are left."""
        return min(self._saved + (self._clock.now() - self._saved_at) / DETAILS_EVERY, DETAILS_SAVED)

    def _forget(self) -> None:
        before = self._clock.now() - LATELY
        while self._returns and self._returns[0] <= before:
            self._returns.popleft()
        while self._seen and next(iter(self._seen.values())) <= before:
            self._seen.popitem(last=False)


def _records(status: Json, fields: StatusFields) -> dict[tuple[str, str], object]:
    """The records that the next reconcile reads, by part of the status and field."""
    parts = {name: part for name, part in status.items() if isinstance(part, dict)}
    return {(name, key): part[key] for name, part in parts.items() for key in fields.records if part.get(key)}


def _is_operated_on(fields: StatusFields, *statuses: Json) -> bool:
    """Whether a component is in a phase other than that of rest, such as an upgrade, whose steps show at once."""
    parts = (part for status in statuses for part in status.values() if isinstance(part, dict))
    return any(part.get("phase", "") not in ("", fields.resting) for part in parts)


def tells_reconciles(stored: Json, status: Json, fields: StatusFields = ALL_ALIKE) -> bool:
    """Whether a status tells the next reconcile more than the `stored` one: anything but details and conditions."""
    one, other = (_without_details(each, fields) for each in (stored, status))
    return _without_conditions(one) != _without_conditions(other)


def _without_conditions(status: Json) -> Json:
    kept = {key: _without_conditions(each) if isinstance(each, dict) else each for key, each in status.items()}
    return {key: each for key, each in kept.items() if key != "conditions" and each != {}}


def _shape(status: Json) -> bytes:
    """A status without its sentences, times, counts and generations, which differ each time."""
    return digest(_without_sentences(status))


def _without_sentences(value: object) -> object:
    if isinstance(value, list):
        return [_without_sentences(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if key != "message" and not key.lower().endswith(_UNSTEADY)}
    return {key: _without_sentences(each) for key, each in kept.items()}


def _only_details(stored: Json, status: Json, fields: StatusFields) -> bool:
    return _without_details(stored, fields) == _without_details(status, fields)


def _without_details(status: Json, fields: StatusFields) -> Json:
    """The part of a status that readers act on. The reason of a condition that holds is not part of it."""
    kept: Json = {}
    for key, each in status.items():
        if key == "conditions":
            kept[key] = _without_messages(each)
        elif isinstance(each, dict) and key not in fields.details:
            kept[key] = _without_details(each, fields)
        elif key not in fields.details and not (key == "phase" and each == fields.resting):
            kept[key] = each
    return {key: each for key, each in kept.items() if each not in ({}, None)}


def _without_messages(conditions: object) -> Json:
    """Of each condition by its type: whether it holds, else its reason. Other writers may have left anything there."""
    entries = conditions if isinstance(conditions, list) else ()
    known = [each for each in entries if isinstance(each, dict)]
    return {str(each.get("type")): each.get("status") == "True" or each.get("reason") for each in known}
