"""Pods that have been Ready for as long as the user demands (minReadySeconds by annotation, lifecycle.md 14)."""

from collections.abc import Mapping

from member import labels
from member.context import ClusterContext
from member.observed.pod import Pod
from member.polling import seconds_since


def min_ready_seconds(annotations: Mapping[str, str], component: str) -> int:
    """Seconds for which a pod must be Ready before the next one is restarted; 0 without the annotation (14)."""
    text = annotations.get(labels.min_ready_seconds(component), "0")
    return int(text) if text.isdecimal() else 0


def is_available(ctx: ClusterContext, component: str, pod: Pod) -> bool:
    """True if a pod is Ready, and has been for the seconds in the annotation."""
    wanted = min_ready_seconds(ctx.tc.metadata.annotations, component)
    if not (pod.is_ready and pod.ready_since):
        return pod.is_ready
    age = seconds_since(pod.ready_since, ctx.deps.clock.wall())
    # a clock that was set back must not block a roll (F44)
    return age < 0 or age >= wanted
