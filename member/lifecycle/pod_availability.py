"""Pods that have been Ready for as long as the user wants (minReadySeconds by annotation, lifecycle.md 14)."""

from collections.abc import Mapping

from member import labels
from member.context import ClusterContext
from member.observed.pod import Pod
from member.polling import seconds_since


def min_ready_seconds(annotations: Mapping[str, str], component: str) -> int:
    """How long a pod must have been Ready before the next one is restarted; 0 unless an annotation says (14)."""
    text = annotations.get(labels.min_ready_seconds(component), "0")
    return int(text) if text.isdecimal() else 0


def is_available(ctx: ClusterContext, component: str, pod: Pod) -> bool:
    """Whether a pod is Ready, and has been for as long as the user wants before something else is done."""
    wanted = min_ready_seconds(ctx.tc.metadata.annotations, component)
    if not (pod.is_ready and pod.ready_since):
        return pod.is_ready
    age = seconds_since(pod.ready_since, ctx.deps.clock.wall())
    # a clock that was put back must not hold up a roll (F44)
    return age < 0 or age >= wanted
