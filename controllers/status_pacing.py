"""The pace of status writes: important changes at once, details and fluctuations less often (I29).

While a cluster starts or rolls, numbers in its status change many times a second. These details wait for the next
important write, or for a short while.

A node that fails and recovers repeatedly would cause status writes for every cluster with a pod there; with several
such nodes the combinations differ each time. Once a status has returned to an earlier one, further returns keep a
minimum distance, and after several returns all its writes do. A lasting loss shows at the end of it; a loss that is
over by then needs no write. Failover records, and new steps of an upgrade or scaling, are written at once nevertheless.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kube.objects import Json, digest
from ports.ageing import Ageing
from ports.clock import Clock
from ports.pace import Bucket, Pace

LATELY = 600.0
"""Seconds for which a status is remembered."""

OFTEN = 3
"""The number of returns to an earlier status within LATELY from which the status counts as fluctuating."""

APART = 5.0
"""Seconds within which several returns count as one, because many things change at once when something starts."""

AT_ONCE = 6
"""The number of returns within APART that no start has: answers change with each request. Further ones count each."""

EVERY, AT_FIRST = 20.0, 30.0
"""Seconds between two writes of a fluctuating status, and after a first return before the next: three in a minute."""

_ALTERNATES = 2
"""The number of returns within APART from which the next reconcile waits."""

DETAILS = Pace(10.0, 10.0, at_once=30)
"""The pace of writes of nothing but details. Thirty are saved up, so that changes after a quiet time show at once.

Without it a cluster's start costs 8 writes of its status, not 4 (bench/memories.json).
"""

_REMEMBERED = 64

_UNSTEADY = ("time", "count", "generation")
"""Suffixes of the names of fields that differ in every status."""


@dataclass(frozen=True, slots=True)
class StatusFields:
    """The classification of the fields of a status.

    `details` are observed in each reconcile; when they matter, `phase` or a condition shows it. `records` are written
    at once, because the next reconcile reads them. On changes of `acted_on` the reconcile that writes them has acted.
    `resting` is the value of `phase` outside of operations.
    """

    details: Collection[str] = ()
    acted_on: Collection[str] = ()
    records: Collection[str] = ()
    resting: str = ""


ALL_ALIKE = StatusFields()
"""The classification of a status without details and records."""


class StatusPacing:
    """Decides when the status of one object may be written, from its recent history. Not thread-safe.

    Without it a node that comes and goes costs 12 writes in two minutes, not 6; a PD that gives two answers in turn
    costs 81 in a minute, not 11 (bench/memories.json).
    """

    def __init__(self, clock: Clock, fields: StatusFields = ALL_ALIKE) -> None:
        self._clock, self._fields = clock, fields
        self._seen: Ageing[bytes, None] = Ageing(LATELY, _REMEMBERED)
        self._returns: deque[float] = deque()
        self._at_once = 0
        """The returns since the last pause between two writes."""
        self._written = clock.now() - EVERY
        self._details = Bucket(DETAILS, clock.now(), left=0.0)

    def pause(self, stored: Json, status: Json) -> float:
        """The seconds until `status` may replace the `stored` one; 0 if it may now."""
        fields, now = self._fields, self._clock.now()
        while self._returns and self._returns[0] <= now - LATELY:
            self._returns.popleft()
        details = self._details.pause(now) if _only_details(stored, status, fields) else 0.0
        if not self._returns or _records(stored, fields) != _records(status, fields):
            return details
        fluctuates, is_new = len(self._returns) >= OFTEN, self._seen.entry(_shape(status), now) is None
        if is_new and (not fluctuates or _is_operated_on(fields, stored, status)):
            return details
        if not fluctuates and now - self._returns[0] < APART:
            return details
        return max(self._written + (EVERY if fluctuates else AT_FIRST) - now, details, 0.0)

    def wrote(self, stored: Json, status: Json) -> bool:
        """Note that `status` has replaced the `stored` one. True if the next reconcile should wait."""
        now, shape = self._clock.now(), _shape(status)
        if _only_details(stored, status, self._fields):
            self._details.take(now)
        pause, self._written = now - self._written, now
        is_return = self._seen.entry(shape, now) is not None and shape != self._seen.newest()
        self._at_once = (self._at_once if pause < APART else 0) + is_return
        if is_return and (not self._returns or now - self._returns[-1] >= APART or self._at_once > AT_ONCE):
            self._returns.append(now)
        self._seen.note(shape, None, now)
        return is_return and self._at_once >= _ALTERNATES


def _records(status: Json, fields: StatusFields) -> dict[tuple[str, str], object]:
    """The records that the next reconcile reads, by component and field."""
    parts = {name: part for name, part in status.items() if isinstance(part, dict)}
    return {(name, key): part[key] for name, part in parts.items() for key in fields.records if part.get(key)}


def _is_operated_on(fields: StatusFields, *statuses: Json) -> bool:
    """True if a component is in an operation such as an upgrade, whose steps show at once."""
    parts = (part for status in statuses for part in status.values() if isinstance(part, dict))
    return any(part.get("phase", "") not in ("", fields.resting) for part in parts)


def tells_reconciles(stored: Json, status: Json, fields: StatusFields = ALL_ALIKE) -> bool:
    """True if a status differs from the `stored` one in more than details, conditions and what its writer acted on."""
    return not _only_details(stored, status, replace(fields, details={*fields.details, *fields.acted_on, "conditions"}))


def _shape(status: Json) -> bytes:
    """The digest of a status without messages, times, counts and generations, which differ each time."""
    steady: Json = msgspec.json.decode(msgspec.json.encode(status))
    parts: list[Any] = [steady]
    # grows by the parts of each part
    for part in parts:
        if isinstance(part, dict):
            for key in list(part):
                if key == "message" or key.lower().endswith(_UNSTEADY):
                    del part[key]
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return digest(steady)


def _only_details(stored: Json, status: Json, fields: StatusFields) -> bool:
    """True if both statuses agree in what readers act on."""
    for key in {**stored, **status}:
        before, now = stored.get(key), status.get(key)
        if before == now or key in fields.details:
            continue
        if isinstance(before, dict) and isinstance(now, dict) and key != "conditions":
            if not _only_details(before, now, fields):
                return False
        elif _acted_on(key, before, fields) != _acted_on(key, now, fields):
            return False
    return True


def _acted_on(key: str, value: object, fields: StatusFields) -> object:
    """The part of a field that readers act on; None if there is none."""
    if key in fields.details or (key == "phase" and value == fields.resting):
        return None
    if key == "conditions":
        return _without_messages(value)
    if isinstance(value, dict):
        parts = {name: _acted_on(name, each, fields) for name, each in value.items()}
        return {name: part for name, part in parts.items() if part is not None} or None
    return value


def _without_messages(conditions: object) -> Json | None:
    """By type of condition: True, or the reason if it is not True. Skips entries that other writers have malformed."""
    kept: Json = {}
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict):
            kept[str(each.get("type"))] = each.get("status") == "True" or each.get("reason")
    return kept or None
