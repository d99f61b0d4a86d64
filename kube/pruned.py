"""Status fields that a CRD does not define, so that the API server prunes them from each write.

v1.6's CRDs have no conditions for some kinds. Pruned fields are kept here instead; otherwise each sync would send and
log them again. Periodically one object is written nevertheless, because a CRD may have been replaced.
"""

import threading
from typing import Any

import msgspec

from kube.objects import Json, Object
from kube.resources import Resource
from ports.ageing import Ageing
from ports.clock import Clock
from ports.lazy_log import get_logger

_log = get_logger(__name__)

_AGAIN = 600.0
"""Seconds after which one object of a kind is written again, to see if the CRD now has the fields."""

_REMEMBERED = 4096
"""The number of remembered objects per kind."""


class Pruned:
    """The pruned fields by kind and object. Thread-safe.

    Without them a waiting TidbDashboard is written 22 times in ten minutes, not twice (bench/memories.json). After a
    restart each object is written once more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Resource, Ageing[str, bytes]] = {}
        self._try_at: dict[Resource, float] = {}

    def status_of(self, resource: Resource, there: Object) -> Json:
        """The status of an object with the fields that were pruned; a fresh tree."""
        status: Json = there.decode().get("status") or {}
        with self._lock:
            kept = self._of(resource, there.metadata.uid)
        return _filled(status, _tree(kept)) if kept else status

    def due(self, resource: Resource, uid: str) -> Json:
        """The pruned fields of an object if this is the one to try again now; else empty."""
        with self._lock:
            kept = self._of(resource, uid)
            if kept is None or self._clock.now() < self._try_at[resource]:
                return {}
            self._try_at[resource] = self._clock.now() + _AGAIN
        return _tree(kept)

    def note(self, resource: Resource, written: Object, wanted: Json) -> None:
        """Record the answer to a write of a status, and the status that was sent."""
        uid, missing = written.metadata.uid, _missing(wanted, written.decode().get("status") or {})
        with self._lock:
            kept = self._kept.get(resource)
            if missing:
                self._keep(resource, uid, missing)
            elif kept and kept.get(uid):
                # the CRD now has the fields, for all objects
                del self._kept[resource]
        if missing and not kept:
            fields = ", ".join(f"status.{field}" for field in sorted(missing))
            _log.warning("the definition has no room for fields", kind=resource.kind, fields=fields)

    def _keep(self, resource: Resource, uid: str, missing: Json) -> None:
        if resource not in self._kept:
            self._kept[resource] = Ageing(most=_REMEMBERED)
            self._try_at[resource] = self._clock.now() + _AGAIN
        self._kept[resource].note(uid, msgspec.json.encode(missing))

    def _of(self, resource: Resource, uid: str) -> bytes | None:
        kept = self._kept.get(resource)
        return kept.get(uid) if kept else None


def _tree(kept: bytes) -> Json:
    tree: Json = msgspec.json.decode(kept)
    return tree


def _missing(wanted: Json, there: Json) -> Json:
    """The fields of one tree that the other lacks, as a tree."""
    missing: Json = {}
    for key, value in [(key, value) for key, value in wanted.items() if there.get(key) != value]:
        if key not in there:
            missing[key] = value
        elif isinstance(value, dict) and isinstance(there[key], dict) and (below := _missing(value, there[key])):
            missing[key] = below
    return missing


def _filled(tree: Any, more: Any) -> Any:
    """A tree, completed by the fields of another."""
    if not isinstance(tree, dict) or not isinstance(more, dict):
        return tree
    return more | {key: _filled(value, more.get(key)) for key, value in tree.items()}
