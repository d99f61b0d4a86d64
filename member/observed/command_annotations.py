"""The commands in a pod's annotations, and annotations that have the name of a command but no valid value. Pure.

`kubectl tidb` imports this module, so it imports no client of the data plane.
"""

from dataclasses import dataclass
from datetime import datetime

from apis import pod_commands
from apis.components import component_type, is_component
from apis.times import parse_time
from kube.objects import Object
from member import labels

_EXPIRATION_TIMES = {
    pod_commands.EVICT_LEADER: labels.TIKV_EVICT_LEADER_EXPIRATION_TIME,
    pod_commands.EVICT_LEADER_FOR_RESIZE: labels.TIKV_EVICT_LEADER_EXPIRATION_TIME,
    pod_commands.PD_TRANSFER_LEADER: labels.PD_EVICT_LEADER_EXPIRATION_TIME,
}


@dataclass(frozen=True, slots=True)
class Command:
    """An annotation of a pod that requests an operation on it."""

    key: str
    value: str

    def is_on(self, pod: Object) -> bool:
        """True if the pod carries the command."""
        return pod.metadata.annotations.get(self.key) == self.value


def commands_of(pod: Object) -> list[Command]:
    """The commands that a pod carries, without annotations with unknown values."""
    return [Command(key, value) for key, value, known in _annotated(pod) if value in known]


def unknown_values(pod: Object) -> list[str]:
    """A message for each annotation that has the name of a command but an unknown value."""
    return [
        f"annotation {key} of pod {pod.metadata.name}: {value!r} is not one of {', '.join(sorted(known))}; ignored"
        for key, value, known in _annotated(pod)
        if value not in known
    ]


def is_commanded(pod: Object) -> bool:
    """True if a pod has any annotation with the name of a command, whatever its value."""
    return bool(_annotated(pod))


def seconds_left(pod: Object, command: Command, now: datetime) -> float | None:
    """Seconds until a command of a pod expires; None if it never does.

    0 if it has expired, or if its expiration time is invalid.
    """
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
