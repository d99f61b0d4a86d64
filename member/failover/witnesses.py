"""The two witnesses of a loss: the component and Kubernetes (lifecycle.md 9.1).

One alone proves nothing: to an operator that is cut off, all members look unhealthy, and a Ready pod may have a dead
process.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

import msgspec

from apis import predicates
from apis.accessor import find, workloads
from apis.components import component_type
from apis.ordinals import spec_ordinals
from apis.times import parse_time
from kube.objects import Json, Object
from kube.resources import NODES, PODS
from member import labels
from member.context import ClusterContext
from member.naming import member_name, ordinal_of
from member.objects.stateful_set import ON_DELETE, is_rolling
from member.observed.claims import Claim, claim_names, claims_of
from member.observed.nodes import Node, NodeState, node_state
from member.observed.pod import Pod
from member.observed.pods import pods_of, started_pods, wanted_pods
from member.observed.status import is_upgrading
from member.polling import seconds_since

_FORGIVEN = 600.0
"""Seconds after which Kubernetes, too, no longer counts a running container's earlier crashes."""

_SLOW_START = 120.0
"""Seconds that a started pod may take to serve."""

_ENDED, _NOTICED = timedelta(minutes=2), timedelta(seconds=30)
"""A restart explains an illness that began at most 2 min before the new pod was created, or 30 s after that."""
_HOSTNAME = "kubernetes.io/hostname"


class PodState(Enum):
    """The testimony of a pod."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"
    ABSENT = "absent"


def is_lost(component_says_so: bool, pod: PodState, node: NodeState) -> bool:
    """True if the component and Kubernetes both report a member as lost (9.1, R18)."""
    return component_says_so and (pod is not PodState.READY or node is NodeState.NOT_READY)


@dataclass(frozen=True, slots=True)
class Failing:
    """A member that both witnesses call lost. `lasted`: seconds for which this process has seen both say so (F44)."""

    key: str
    pod: str
    since: datetime
    lasted: float


def failing(
    ctx: ClusterContext,
    component: str,
    suspects: Mapping[str, str],
    ill_since: Callable[[str], datetime | None] = lambda _: None,
) -> tuple[Failing, ...]:
    """The lost members among those that the component calls failed, by ordinal.

    `suspects`: the pods, by a key that identifies the member for good. A pod that the operator's own restart has taken
    down does not count (F12), unless it was lost before: this process has seen that, or `ill_since` returns an earlier
    time. Call this once per reconcile.
    """
    times = {pod: ill_since(key) for key, pod in suspects.items()}
    away = _away(ctx, component, times)
    lost = {key: pod for key, pod in suspects.items() if pod in away}
    seen = ctx.memory.failure_timers.update(component, lost, ctx.deps.clock)
    found = [Failing(key, pod, seen[key].since, seen[key].seconds) for key, pod in lost.items()]
    return tuple(sorted(found, key=lambda each: ordinal_of(each.pod)))


def _away(ctx: ClusterContext, component: str, ill_since: Mapping[str, datetime | None]) -> set[str]:
    """The pods that Kubernetes calls lost for another reason than a roll.

    They are remembered before the component reports their loss, and through a roll that restarts them. A recent crash
    counts only if the component calls the member unhealthy. Other members have recovered, such as PD members, which
    restart when they join.
    """
    pods, live = {pod.metadata.name: pod for pod in pods_of(ctx, component)}, ctx.stateful_set(component)
    kind, body = f"{component} away", ctx.tree(live) if live else {}
    before, away, noted = ctx.memory.failure_timers.known(kind), set(), set()
    for name in wanted_pods(ctx, component):
        pod = pods.get(name)
        state = testimony(ctx, component, pod) if name in ill_since else pod_state(pod)
        node = node_state(ctx, pod)
        lost = is_lost(True, state, node)
        if not lost and name not in before:
            continue
        since = ill_since.get(name)
        restarted = (
            node is not NodeState.NOT_READY  # no restart has done that
            and not _is_over(ctx, component, body)
            and _by_our_own_restart(body, pod, since)
            and not _is_on_newer_volume(ctx, component, pod, since)
            and not _fails_alone(ctx, component, pod)
            and not (pod and is_stranded(ctx, pod))
        )
        if name in before if restarted else lost:
            noted.add(name)
            away |= {name} if lost else set()
    ctx.memory.failure_timers.update(kind, noted, ctx.deps.clock)
    return away


def desired_pods(ctx: ClusterContext, component: str) -> list[str]:
    """The pods that the spec alone asks for, by ordinal."""
    name = member_name(ctx.tc, component)
    return [f"{name}-{ordinal}" for ordinal in spec_ordinals(ctx.tc, component).ordinals]


def pod_state(pod: Object | None) -> PodState:
    """The state of a pod; a pod that is being deleted is not Ready."""
    if pod is None:
        return PodState.ABSENT
    seen = pod.decode_as(Pod)
    if seen.status.phase == "Unknown":
        return PodState.UNKNOWN
    return PodState.READY if seen.is_ready and not pod.metadata.deletion_timestamp else PodState.NOT_READY


def is_lost_now(ctx: ClusterContext, component: str, name: str) -> bool:
    """True if a live read of pod and node also shows the pod as lost, as the caches may lag behind (F1).

    Raises ApiError, TransportError.
    """
    pod = ctx.deps.client.find(PODS, name, ctx.namespace)
    where = pod.decode_as(Pod).spec.node_name if pod and ctx.listers.nodes is not None else ""
    node = ctx.deps.client.find(NODES, where) if where else None
    return is_lost(True, testimony(ctx, component, pod), node.decode_as(Node).state if node else NodeState.UNKNOWN)


def testimony(ctx: ClusterContext, component: str, pod: Object | None) -> PodState:
    """The state of a pod; not Ready after a recent crash, as Kubernetes calls a pod without a probe Ready at once."""
    state = pod_state(pod)
    if pod is None or state is not PodState.READY or not _has_crashed_lately(ctx, component, pod):
        return state
    return PodState.NOT_READY


def _has_crashed_lately(ctx: ClusterContext, component: str, pod: Object) -> bool:
    seen, clock = pod.decode_as(Pod), ctx.deps.clock
    since = seen.running_since(component)
    if not since or not seen.restarts(component):
        return False
    known = ctx.memory.stopwatches.look("crashed", f"{pod.metadata.uid} {since}", clock).seconds
    return known < _FORGIVEN and seconds_since(since, clock.wall()) < _FORGIVEN


def is_cut_off(ctx: ClusterContext, component: str) -> bool:
    """True if over half of the servers called in this reconcile gave no good answer: the operator may be cut off (F43).

    Servers of other components that are called one by one do not count, as they do not confirm what PD reports.
    """
    answered: list[bool] = []
    for workload in workloads(ctx.tc):
        status = predicates.status_of(ctx.tc, workload.name)
        if workload.type.replaceable and status is not None and (workload.name == component or status.servers is None):
            pods = pods_of(ctx, workload.name)
            running = started_pods(pods, workload.name)
            answered += status.answers(running)
    return answered.count(False) * 2 > len(answered)


def _is_over(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if a roll by the user (OnDelete) is over: all pods run the newest revision. Kubernetes reports no end."""
    spec = find(ctx.tc, component)
    by_hand = spec is not None and spec.stateful_set_update_strategy == ON_DELETE
    return by_hand and bool(body) and not is_upgrading(body, pods_of(ctx, component))


def _by_our_own_restart(body: Json, pod: Object | None, ill_since: datetime | None) -> bool:
    """True if a roll has recreated or is recreating this pod, and its member became unhealthy through that (F12)."""
    if not body or not is_rolling(body):
        return False
    if pod is None:
        return True
    meta = pod.metadata
    made = meta.labels.get(labels.CONTROLLER_REVISION_HASH) != body["status"].get("currentRevision")
    restarted = parse_time(meta.deletion_timestamp or (meta.creation_timestamp if made else None) or "")
    return restarted is not None and (ill_since is None or -_NOTICED < restarted - ill_since < _ENDED)


def _fails_alone(ctx: ClusterContext, component: str, pod: Object | None) -> bool:
    """True if a pod has started but does not serve, while another pod of its revision does (F12).

    The roll is not to blame then, unless the start is merely slow. A pod that has not started may lack resources for
    its new template.
    """
    if pod is None or not pod.decode_as(Pod).has_started(component):
        return False
    if ctx.memory.stopwatches.look("started anew", pod.metadata.uid, ctx.deps.clock).seconds < _SLOW_START:
        return False
    revision = pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    alike = (
        each
        for each in pods_of(ctx, component)
        if each is not pod and each.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == revision
    )
    return any(testimony(ctx, component, obj) is PodState.READY for obj in alike)


def _is_on_newer_volume(ctx: ClusterContext, component: str, pod: Object | None, ill_since: datetime | None) -> bool:
    """True if the pod's data volume was created after its member became unhealthy: the member's own volume is gone
    (F12)."""
    row = component_type(component)
    claim = claim_names(pod).get(f"{row.data_volume}0" if row.storage_claims else row.data_volume) if pod else None
    found = ctx.listers.persistent_volume_claims.get(ctx.namespace, claim) if claim else None
    time = parse_time((found and found.metadata.creation_timestamp) or "")
    return time is not None and ill_since is not None and time > ill_since


class _Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[_Requirement, ...] = ()


class _NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: tuple[_Term, ...] = ()


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _NodeSelector = msgspec.field(default_factory=_NodeSelector)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity = msgspec.field(default_factory=_NodeAffinity)


class _Volume(msgspec.Struct, frozen=True):
    """The part of a PersistentVolume that decisions read."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


def is_stranded(ctx: ClusterContext, pod: Object) -> bool:
    """True if no machine that has a volume of the pod is Ready: the pod can run nowhere.

    False if the operator may not read nodes and volumes.
    """
    volumes, nodes = ctx.listers.persistent_volumes, ctx.listers.nodes
    if volumes is None or nodes is None:
        return False
    ready = {
        node.metadata.labels.get(_HOSTNAME, "")
        for node in nodes.list()
        if node.decode_as(Node).state is NodeState.READY
    }
    names = (claim.decode_as(Claim).spec.volume_name for claim in claims_of(ctx, pod))
    found = (volumes.get("", name) for name in names if name)
    hosts = (set(_hosts(volume)) for volume in found if volume is not None)
    return any(host and not host & ready for host in hosts)


def _hosts(volume: Object) -> Iterator[str]:
    """The machines from which a volume can be used; none if the volume is not tied to machines."""
    for term in volume.decode_as(_Volume).spec.node_affinity.required.node_selector_terms:
        for requirement in term.match_expressions:
            if requirement.key == _HOSTNAME and requirement.operator == "In":
                yield from requirement.values
