"""Annotations of a cluster (defaults-and-validation.md 3.1)."""

import re
from collections.abc import Iterator
from operator import attrgetter

from apis import overlays
from apis.cluster import Cluster
from apis.components import component_names
from apis.graceful_stop import GRACEFUL_STOP
from apis.ordinals import parse_slots, slots_annotation
from apis.problem import Problem
from apis.ready_endpoints import READY_ENDPOINTS

_MOST_BYTES = 262144
_SWITCHES = {GRACEFUL_STOP: "pods stop without hooks", READY_ENDPOINTS: "probes stay as they are"}
"""The annotations that are true or false, and what holds without them."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?")
_PREFIX = re.compile(r"(?=.{1,253}/?$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def check(tc: Cluster) -> Iterator[Problem]:
    """Keys are qualified names, the whole is not too large, delete slots are lists of ordinals, overlays
    have no protected field, and switches are on or off."""
    annotations = tc.metadata.annotations
    for key in annotations:
        if not is_qualified(key.lower()):
            message = "must be a name of at most 63 letters, digits, `-`, `_` and `.`, after an optional `domain/`"
            yield Problem("metadata.annotations", key, message)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MOST_BYTES:
        yield Problem("metadata.annotations", None, f"must not exceed {_MOST_BYTES} bytes in total; they have {size}")
    for key in map(slots_annotation, component_names(attrgetter("has_delete_slots"), tc.kind)):
        if key in annotations:
            yield from _check_slots(key, annotations[key])
    yield from overlays.check(tc)
    yield from _check_switches(annotations)


def is_qualified(key: str) -> bool:
    """True if a key in lower case is a name after an optional domain."""
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _PREFIX.fullmatch(prefix) is not None)


def _check_slots(key: str, text: str) -> Iterator[Problem]:
    try:
        parse_slots(text)
    except ValueError as error:
        yield Problem(f'metadata.annotations["{key}"]', text, str(error))


def _check_switches(annotations: dict[str, str]) -> Iterator[Problem]:
    for key, otherwise in _SWITCHES.items():
        value = annotations.get(key, "false")
        if value not in ("true", "false"):
            message = f'must be "true" or "false"; without it, {otherwise}'
            yield Problem(f'metadata.annotations["{key}"]', value, message)
