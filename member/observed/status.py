"""The common part of all components' status (lifecycle.md 4.7, 5).

Everything here only reads: it computes a status from StatefulSet, pods and volumes. A time changes only together with
the state that it dates.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from apis import predicates
from apis.components import component_type
from apis.ordinals import OrdinalSet, desired_replicas
from apis.shared import ComponentStatus, Json
from apis.times import stamp
from dataplane.calls import TIMEOUT
from kube.objects import Object, is_observed
from member import labels
from member.context import ClusterContext
from member.naming import ordinal_of, pod_name
from member.objects.stateful_set import is_advanced, is_rolling, ordinals_of
from member.observed.claims import observe_volumes
from member.observed.pods import pods_of, ready_pods, wanted_pods

NORMAL: Final = "Normal"
SCALE: Final = "Scale"
UPGRADE: Final = "Upgrade"
SUSPEND: Final = "Suspend"
_BUDGET = 10.0
"""Seconds per reconcile for asking all servers. It matters if more servers are silent than are asked concurrently."""
_SHORTEST = 0.1
_T = TypeVar("_T")


def phase(
    wanted: int, live: Json, pods: Sequence[Object], previous: str, ignored_pods: Collection[str] = frozenset()
) -> str:
    """The phase of a component, from its StatefulSet and pods (4.7).

    An empty updateRevision, as after a re-creation, is no information: the previous phase stays (F10). Only
    `member.lifecycle.suspend` begins and ends Suspend. `member.lifecycle.rolling` ends an upgrade when the last pod
    serves and its clean-up is complete (F16, F20).
    """
    if previous == SUSPEND:
        return SUSPEND
    if not (live.get("status") or {}).get("updateRevision"):
        return previous or NORMAL
    if wanted != live["spec"].get("replicas"):
        return SCALE
    return UPGRADE if previous == UPGRADE or is_upgrading(live, pods, ignored_pods) else NORMAL


def phase_while_upgrading(ctx: ClusterContext, kind: str) -> predicates.Phase:
    """The phase of a component whose pods need a restart: Upgrade only once it is its turn (4.7)."""
    first = component_type(kind).upgrades_after
    return NORMAL if any(predicates.in_phase(ctx.tc, other, UPGRADE) for other in first) else UPGRADE


def set_phase(ctx: ClusterContext, component: str, phase: str) -> None:
    """Set the phase in the working copy of the status."""
    status = predicates.status_of(ctx.tc, component)
    if status is not None:
        status.phase = phase


def is_upgrading(live: Json, pods: Sequence[Object], ignored_pods: Collection[str] = frozenset()) -> bool:
    """True if a pod runs, or is about to run, a revision other than the newest (4.7).

    `ignored_pods` that are terminating do not count: they may never end.
    """
    status = live.get("status") or {}
    # the newest revision becomes current only when all pods exist, and with OnDelete never
    by_itself = not ignored_pods and (live["spec"].get("updateStrategy") or {}).get("type") != "OnDelete"
    if by_itself and is_rolling(live):
        return True
    replicas_settled = live["spec"].get("replicas") == status.get("replicas")
    if not is_observed(live) and replicas_settled:
        return True
    counted = [pod for pod in pods if pod.metadata.name not in ignored_pods or not pod.metadata.deletion_timestamp]
    revisions = {pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) for pod in counted}
    return all(revisions) and bool(revisions - {status.get("updateRevision")})


def image_of(live: Json, container: str) -> str:
    """The image of a container in the StatefulSet's template; empty if there is no such container."""
    for each in live["spec"]["template"]["spec"]["containers"]:
        if each["name"] == container:
            image: str = each.get("image", "")
            return image
    return ""


def transition_time(old: object, same: bool, now: datetime) -> str:
    """The time of a member's last state change: the recorded time if `same`, otherwise now."""
    recorded = getattr(old, "last_transition_time", None)
    return recorded if same and recorded else stamp(now)


def server_pods(ctx: ClusterContext, component: str, pods: Sequence[Object]) -> list[str]:
    """The pods to ask individually, by ordinal: those that the StatefulSet counts, and those that are wanted and exist.

    A terminating pod, which may stay forever on a lost machine, is asked only if it is wanted. The StatefulSet does not
    count pods that an older StatefulSet of its name has left (R21).
    """
    wanted = set(wanted_pods(ctx, component))
    made = {pod_name(ctx.tc, component, ordinal) for ordinal in _counted(ctx, component)}
    there = {pod.metadata.name for pod in pods}
    ending = {pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp}
    return sorted((made - ending) | (wanted & there), key=ordinal_of)


def _counted(ctx: ClusterContext, component: str) -> OrdinalSet:
    """The pods that the StatefulSet counts. The count of an Advanced one includes pods of slots, which are ending."""
    live = ctx.stateful_set(component)
    if live is not None and is_advanced(body := ctx.tree(live)):
        return ordinals_of(body)
    return OrdinalSet(predicates.actual_replicas(ctx.tc, component))


def observe_pods(
    ctx: ClusterContext,
    kind: str,
    status: ComponentStatus,
    ignored_pods: Collection[str] = frozenset(),
) -> Sequence[Object] | None:
    """Update the part of a component's status that Kubernetes knows; return its pods, or None without a StatefulSet."""
    live, pods = ctx.stateful_set(kind), pods_of(ctx, kind)
    if live is None:
        if status.stateful_set:
            # the cache may merely not show it, so the rest of the status stays; count the pods that are Ready
            status.stateful_set = {**status.stateful_set, "readyReplicas": len(ready_pods(pods))}
        return None
    body = ctx.tree(live)
    status.stateful_set = body.get("status")
    status.phase = phase(desired_replicas(ctx.tc, kind), body, pods, status.phase, ignored_pods)
    if status.phase == UPGRADE:
        status.phase = phase_while_upgrading(ctx, kind)
    if hasattr(status, "image"):
        status.image = image_of(body, kind)
    status.volumes = observe_volumes(ctx, kind, pods)
    return pods


def ask_all(
    ctx: ClusterContext, pods: Sequence[str], before: Mapping[str, bool], ask: Callable[[str, float], _T]
) -> dict[str, _T]:
    """The answer of each pod, in the order of `pods`; `ask` gets a pod and its timeout in seconds.

    Pods that were healthy `before` are asked first. Calls run concurrently, so `ask` must not read the API server: read
    what it needs before the call.
    """
    clock = ctx.deps.clock
    deadline = clock.now() + _BUDGET

    def answer(pod: str) -> _T:
        return ask(pod, min(max(deadline - clock.now(), _SHORTEST), TIMEOUT))

    ordered = sorted(pods, key=lambda pod: not before.get(pod))
    answers = ctx.deps.dataplane.side_by_side.run([partial(answer, pod) for pod in ordered])
    found = dict(zip(ordered, answers, strict=True))
    return {pod: found[pod] for pod in pods}
