"""Which commands a pod carries, and which annotations look like commands but are none. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kube.objects import Object
from member import labels

NONE: Final = "none"
"""Let go of what the pod does, and leave the pod."""

DELETE_POD: Final = "delete-pod"
"""Let go of what the pod does, then restart it."""

BUSY = 60.0
"""Seconds until the next look while something else goes on in the cluster."""

LETTING_GO = 15.0
"""Seconds until the next look at leaders and data that move away."""

SOON = 0.5
"""Seconds until the next look at what an event will most likely tell before."""

_AND_THEN = frozenset({NONE, DELETE_POD})
_REPLACE = {labels.REPLACE_VOLUME: frozenset({"true"})}

_BEGUN = {labels.REPLACEMENT_BEGUN: frozenset({"true"})}

_VALUES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "pd": _REPLACE | _BEGUN | {labels.PD_TRANSFER_LEADER: _AND_THEN},
    "tikv": _REPLACE | _BEGUN | {labels.EVICT_LEADER: _AND_THEN, labels.EVICT_LEADER_FOR_RESIZE: _AND_THEN},
    "tidb": _REPLACE | {labels.TIDB_GRACEFUL_SHUTDOWN: _AND_THEN},
}
"""The commands of each component and the values that they know."""


@dataclass(frozen=True, slots=True)
class Command:
    """An annotation of a pod that tells it what to do."""

    key: str
    value: str

    def is_on(self, pod: Object) -> bool:
        """Whether the pod carries the command."""
        return pod.metadata.annotations.get(self.key) == self.value


def commands_of(pod: Object) -> list[Command]:
    """What a pod is told to do; values that nobody knows tell nothing."""
    return [Command(key, value) for key, value, known in _asked(pod) if value in known]


def unknown_values(pod: Object) -> list[str]:
    """What is wrong with the annotations of a pod that look like commands."""
    return [
        f"annotation {key} of {pod.metadata.name}: {value!r} is none of {', '.join(sorted(known))}; it is ignored"
        for key, value, known in _asked(pod)
        if value not in known
    ]


def is_commanded(pod: Object) -> bool:
    """Whether a pod carries any annotation of a command, also one that nobody knows the value of."""
    return bool(_asked(pod))


def expired(pod: Object, key: str, now: datetime) -> bool:
    """Whether the time in an annotation is over, or is none that can be read; a pod without it waits for ever."""
    text = pod.metadata.annotations.get(key)
    if text is None:
        return False
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        return True
    return end.tzinfo is None or end < now


def _asked(pod: Object) -> list[tuple[str, str, frozenset[str]]]:
    meta = pod.metadata
    known = _VALUES.get(meta.labels.get(labels.COMPONENT, ""), {})
    return [(key, meta.annotations[key], values) for key, values in known.items() if key in meta.annotations]
