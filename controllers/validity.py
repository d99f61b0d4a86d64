"""A cache of the judgement "valid": a spec is judged again only if something that the judgement read has changed.

What each check reads is noted, so that no list of inputs can be wrong: the caches by Readings, the status by field. The
spec and the metadata count as a whole, without the versions, which checks are not shown. Otherwise each reconcile after
a write of the status would judge the same spec: 830 calls more (`make walk`: 6,300 to a DELETE of a store, not 5,474).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import structs

from apis.model import Model
from apis.problem import Problem
from kube.objects import Object
from kube.reading import Readings
from ports import effects
from ports.structs import decoder

M = TypeVar("M", bound=Model)

Check: TypeAlias = Callable[[M, Readings], Sequence[Problem]]
"""Finds the problems of a model; reads caches through the Readings."""

_StatusReads: TypeAlias = dict[tuple[str, ...], bytes]
"""What was read of a status: the values by their paths."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """What a check read that found no problem."""

    status: _StatusReads
    readings: Readings

    def holds_for(self, model: Any) -> bool:
        """True if the check would read the same again in a model with the same spec and metadata."""
        return self.readings.still_hold() and all(_value(model.status, path) == it for path, it in self.status.items())


class Validity:
    """The last judgement of one object, in the memory of one process. Not thread-safe."""

    def __init__(self) -> None:
        self._valid: Object | None = None
        self._passed: Sequence[_Passed] = ()

    def knows(self, cached: Object) -> bool:
        """True if the last judgement of this very object was "valid", whatever has changed around it since."""
        return self._valid is cached

    def problems(self, cached: Object, model: M, checks: Sequence[Check[M]]) -> Sequence[Problem]:
        """The problems of the first check that finds any in the model of an object; invalid ones are judged each time.

        The checks are always the same ones. The model of a kind that is judged like this has a status.
        """
        last = self._valid
        if last is cached and all(each.readings.still_hold() for each in self._passed):
            return ()
        self._valid, passed, is_known = None, list[_Passed](), True
        is_same = last is not None and (last is cached or _said(last) == _said(cached))
        for number, check in enumerate(checks):
            if is_same and self._passed[number].holds_for(model):
                passed.append(self._passed[number])
                continue
            reads = _Passed({}, Readings())
            with effects.watched() as noted:
                problems = check(_as_judged(model, reads.status), reads.readings)
            if problems:
                return problems
            is_known = is_known and not noted.count
            passed.append(reads)
        self._valid, self._passed = cached if is_known else None, passed
        return ()


class _Spec(msgspec.Struct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw()


def _said(cached: Object) -> object:
    """The parts of an object that checks read, except its status."""
    meta = cached.metadata
    return (
        bytes(decoder(_Spec).decode(cached.raw).spec),
        meta.uid,
        meta.deletion_timestamp,
        meta.labels_,
        meta.annotations_,
    )


def _as_judged(model: Any, reads: _StatusReads) -> Any:
    """A model without the versions of its object, which notes what is read of its status."""
    metadata = structs.replace(model.metadata, resource_version="", generation=0)
    return structs.replace(model, metadata=metadata, status=_NotedStatus(model.status, (), reads))


class _NotedStatus:
    """A status, or a part of it, that notes each value that is read."""

    def __init__(self, part: msgspec.Struct, path: tuple[str, ...], reads: _StatusReads) -> None:
        self._part, self._path, self._reads = part, path, reads

    def __getattr__(self, name: str) -> Any:
        value, path = getattr(self._part, name), (*self._path, name)
        if callable(value):
            # what a method reads is unknown
            effects.note()
            return value
        self._reads[path] = _encoded(value)
        return _NotedStatus(value, path, self._reads) if isinstance(value, msgspec.Struct) else value


def _value(status: object, path: tuple[str, ...]) -> bytes:
    for name in path:
        status = getattr(status, name, None)
    return _encoded(status)


def _encoded(value: object) -> bytes:
    """A value as bytes; a part with fields is only said to exist, since its fields are noted when they are read."""
    return b"" if isinstance(value, msgspec.Struct) else msgspec.json.encode(value)
