"""Which commands a pod carries, and which annotations look like commands but are none. Pure."""

from dataclasses import dataclass
from datetime import datetime

from apis import pod_commands
from apis.components import component_type, is_component
from apis.times import parse_time
from kube.objects import Object
from member import labels

RETRY_BUSY = 60.0
"""Seconds until the next poll while something else goes on in the cluster."""

RETRY_DRAINING = 15.0
"""Seconds until the next poll of leaders and data that move away."""

RETRY_SOON = 0.5
"""Seconds until the next poll of what an event will most likely show before."""


_EXPIRATION_TIMES = {
    pod_commands.EVICT_LEADER: labels.TIKV_EVICT_LEADER_EXPIRATION_TIME,
    pod_commands.EVICT_LEADER_FOR_RESIZE: labels.TIKV_EVICT_LEADER_EXPIRATION_TIME,
    pod_commands.PD_TRANSFER_LEADER: labels.PD_EVICT_LEADER_EXPIRATION_TIME,
}


@dataclass(frozen=True, slots=True)
class Command:
    """An annotation of a pod that says what to do with it."""

    key: str
    value: str

    def is_on(self, pod: Object) -> bool:
        """Whether the pod carries the command."""
        return pod.metadata.annotations.get(self.key) == self.value


def commands_of(pod: Object) -> list[Command]:
    """The commands that a pod carries; unknown values are left out."""
    return [Command(key, value) for key, value, known in _annotated(pod) if value in known]


def unknown_values(pod: Object) -> list[str]:
    """What is wrong with the annotations of a pod that look like commands."""
    return [
        f"annotation {key} of pod {pod.metadata.name}: {value!r} is not one of {', '.join(sorted(known))}; ignored"
        for key, value, known in _annotated(pod)
        if value not in known
    ]


def is_commanded(pod: Object) -> bool:
    """Whether a pod carries any annotation of a command, also one with an unknown value."""
    return bool(_annotated(pod))


def seconds_left(pod: Object, command: Command, now: datetime) -> float | None:
    """Until a command of a pod expires, 0 where it has, or its time cannot be read; None: it never does."""
    text = pod.metadata.annotations.get(_EXPIRATION_TIMES.get(command.key, ""))
    if text is None:
        return None
    end = parse_time(text)
    return max((end - now).total_seconds(), 0.0) if end else 0.0


def _annotated(pod: Object) -> list[tuple[str, str, frozenset[str]]]:
    meta = pod.metadata
    name = meta.labels.get(labels.COMPONENT, "")
    known = component_type(name).commands if is_component(name) else {}
    return [(key, meta.annotations[key], values) for key, values in known.items() if key in meta.annotations]
