"""Why pods do not start: from their status, or, if that says nothing, from the newest warning among their events.

Only events report a missing Secret of a volume, a quota or webhook that rejects a pod, or a missing storage class. The
operator reads them live, for pods that have not started for a while.

A pod may also run, and even be Ready, without serving: another client, or a command that was withdrawn too late, has
removed its member or store from PD. Neither etcd nor PD accepts a removed member or store again, so the pod needs new
volumes.
"""

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from apis import predicates
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.ordinals import desired_ordinals
from apis.pod_commands import REPLACE_VOLUME, replaces_volumes
from apis.tidbcluster import TidbCluster
from apis.times import parse_time
from kube.client import Client
from kube.errors import ApiError
from kube.objects import Object, whose
from kube.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from member.context import ClusterContext
from member.labels import MEMBER_ID, STORE_ID, base_labels
from member.naming import discovery_of, ordinal_of
from member.observed.claims import LONGEST_MESSAGE, Claim, claims_of, own_claims
from member.observed.nodes import NodeState, node_state
from member.observed.pod import Pod
from member.observed.pods import is_own_pod, pods_of
from member.ownership import own_member
from ports.clock import Clock
from ports.transport import TransportError


def removal_by_others(ctx: ClusterContext, component: str, pod: Object) -> str:
    """The message that another client has removed the pod's member or store, with the way out.

    Empty if neither was removed, or if the operator itself removed it.
    """
    meta = pod.metadata
    if not isinstance(ctx.tc, TidbCluster) or meta.deletion_timestamp or replaces_volumes(meta.annotations):
        return ""
    status, removed = predicates.status_of(ctx.tc, component), ""
    # the operator itself removes an unwanted member from PD before its pod
    is_wanted = ordinal_of(meta.name) in desired_ordinals(ctx.tc, component)
    if status is None or not is_wanted or meta.name in status.failed_pods:
        return ""
    match status:
        case PDStatus(synced=True):
            removed = _member(ctx.tc, status, meta.name, _id(ctx, pod, MEMBER_ID))
        case TiKVStatus(synced=True) | TiFlashStatus(synced=True):
            removed = _store(status, meta.name, _id(ctx, pod, STORE_ID))
    if not removed:
        return ""
    way_out = f"kubectl annotate pod {meta.name} {REPLACE_VOLUME}=true"
    return f"{removed} was removed from PD, and the pod can return only with new volumes: {way_out}"


def _id(ctx: ClusterContext, pod: Object, label: str) -> str:
    """The id by which PD knew the pod. A recreated pod lacks the label, but its claims keep it."""
    metas = (obj.metadata for obj in (pod, *claims_of(ctx, pod)))
    return next((meta.labels[label] for meta in metas if label in meta.labels), "")


def _member(tc: TidbCluster, status: PDStatus, pod: str, member: str) -> str:
    members = [*status.members.values(), *status.peer_members.values()]
    if any(each.id == member for each in members) or own_member(tc, members, ordinal_of(pod)):
        return ""
    return f"member {member}" if member else ""


def _store(status: TiKVStatus | TiFlashStatus, pod: str, store: str) -> str:
    has_another = any(each.pod_name == pod for each in status.stores.values())
    return f"store {store}" if store in status.tombstone_stores and not has_another else ""


LOOK_AGAIN = 10.0
"""Seconds until the next check of a pod without a known cause: events trigger no reconcile of the cluster."""

_OF_GROWTH = ("FileSystemResizePending", "ControllerResizeError", "NodeResizeError")
"""Conditions of a claim whose volume has not grown to the requested size yet."""

_NOT_GROWN = "VolumeResizeFailed"
"""The reason of the events by which storage drivers reject a size."""

Complaint: TypeAlias = Callable[[Resource, str, str], str]
"""Returns the last warning about an object, from its resource, name and UID. An empty UID means any of that name."""
SAID_ELSEWHERE = frozenset({"BackOff", "Failed", "FailedScheduling", "Unhealthy"})
"""Reasons of events that repeat what the pod's status says."""
_RETRIED = timedelta(minutes=20)
"""A StatefulSet retries the creation of a pod at least this often, so an older rejection is over."""


def troubles_of(ctx: ClusterContext, component: str, names: Iterable[str]) -> dict[str, str]:
    """What keeps each named pod from being Ready; an empty text if nothing is known.

    A Ready pod is included if it does not serve because another client has removed its member or store from PD.
    """
    there = {pod.metadata.name: pod for pod in pods_of(ctx, component)}
    found = {}
    for name in names:
        pod = there.get(name)
        removed = removal_by_others(ctx, component, pod) if pod else ""
        if pod is None or not pod.decode_as(Pod).is_ready:
            found[name] = "; ".join(filter(None, (_trouble(ctx, component, pod, name), removed)))
        elif removed:
            found[name] = removed
    return found


def _trouble(ctx: ClusterContext, component: str, pod: Object | None, name: str) -> str:
    if pod is None:
        live = ctx.stateful_set(component)
        if live is None:
            return ""
        return _complaint(ctx, STATEFUL_SETS, live.metadata.name, of_pod=name) or _pod_in_the_way(ctx, live, name)
    if node_state(ctx, pod) is NodeState.NOT_READY:
        return f"node {pod.decode_as(Pod).spec.node_name} is not Ready"
    return trouble_of_own(ctx, pod)


def _pod_in_the_way(ctx: ClusterContext, stateful_set: Object, name: str) -> str:
    """The foreign pod that has the name of a missing pod. Kubernetes records no event about it (F4)."""

    def read() -> str:
        try:
            pod = ctx.deps.client.find(PODS, name, ctx.namespace)
        except (ApiError, TransportError):
            return ""
        return "" if pod is None or is_own_pod(ctx, pod) else in_the_way(pod, stateful_set.metadata.name)

    return ctx.memory.complaints.of(f"{PODS.kind}/{name}/in the way", read, ctx.deps.clock)


def in_the_way(pod: Object, stateful_set: str) -> str:
    """The message that a foreign pod has the name of a pod that a StatefulSet lacks."""
    return (
        f"the name belongs to another pod, {whose(pod)}, so StatefulSet {stateful_set} cannot create its own; delete "
        "that pod, or have its controller use another name"
    )


def trouble_of_own(ctx: ClusterContext, pod: Object) -> str:
    """What keeps a pod of the cluster from being Ready. Events are read at intervals, and cached in between."""
    return trouble_of(pod, lambda resource, name, uid: _complaint(ctx, resource, name, uid=uid))


def trouble_of(pod: Object, complaint: Complaint) -> str:
    """What keeps a pod from being Ready; empty if nothing is known."""
    seen = pod.decode_as(Pod)
    if pod.metadata.deletion_timestamp or (seen.trouble and "persistentvolumeclaim" not in seen.trouble.lower()):
        return seen.trouble
    if seen.trouble:
        claims = (complaint(PERSISTENT_VOLUME_CLAIMS, claim, "") for claim in own_claims(pod))
        return "; ".join(dict.fromkeys([seen.trouble, *filter(None, claims)]))
    if seen.crashes:
        return seen.crashes
    return complaint(PODS, pod.metadata.name, pod.metadata.uid) if seen.status.phase == "Pending" else ""


def trouble_of_growth(ctx: ClusterContext, claim: Object) -> str:
    """What keeps a claim from growing: its conditions, otherwise its driver's event. Read only after a delay.

    Most file systems grow within seconds, although the claim meanwhile reports that its pod must restart.
    """
    meta, seen = claim.metadata, claim.decode_as(Claim)

    def read() -> str:
        growing = (
            condition
            for condition in seen.status.conditions
            if condition.type in _OF_GROWTH and condition.status == "True"
        )
        messages = "; ".join(f"{condition.type}: {condition.message[:LONGEST_MESSAGE]}" for condition in growing)
        about = (ctx.deps.client, ctx.deps.clock, ctx.namespace, PERSISTENT_VOLUME_CLAIMS, meta.name)
        return messages or read_complaint(*about, uid=meta.uid, reason=_NOT_GROWN)

    key = f"growth/{meta.uid}/{seen.spec.resources.requests.storage}"
    return ctx.memory.complaints.of(key, read, ctx.deps.clock)


def _complaint(ctx: ClusterContext, resource: Resource, name: str, *, uid: str = "", of_pod: str = "") -> str:
    """The newest warning about an object; with `of_pod`, a StatefulSet's warning about that pod. Empty without one."""

    def read() -> str:
        return read_complaint(ctx.deps.client, ctx.deps.clock, ctx.namespace, resource, name, uid=uid, of_pod=of_pod)

    return ctx.memory.complaints.of(f"{resource.kind}/{name}/{uid}{of_pod}", read, ctx.deps.clock)


def read_complaint(
    client: Client,
    clock: Clock,
    namespace: str,
    resource: Resource,
    name: str,
    *,
    uid: str = "",
    of_pod: str = "",
    reason: str = "",
) -> str:
    """The newest warning about an object, read live. `of_pod` and `reason` narrow it to one pod, or to one reason.

    Empty if there is none or if events cannot be read: only the text of a message depends on it.
    """
    about = {"kind": resource.kind, "name": name} | ({"uid": uid} if uid else {})
    asked = {f"involvedObject.{key}": value for key, value in about.items()} | {"type": "Warning"}
    selector = ",".join(f"{key}={value}" for key, value in (asked | ({"reason": reason} if reason else {})).items())
    try:
        found = client.list_page(EVENTS, namespace, field_selector=selector).items
    except (ApiError, TransportError):
        return ""
    events, now = [obj.decode_as(Event) for obj in found], clock.wall()
    relevant = (event for event in events if not of_pod or (event.names(of_pod) and event.is_recent(now)))
    newest = newest_complaint(relevant)
    return f"{newest.reason}: {newest.message[:LONGEST_MESSAGE]}" if newest else ""


class Involved(msgspec.Struct, frozen=True):
    """The object that an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an event that the operator reads."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    involved_object: Involved = msgspec.field(default_factory=Involved)

    @property
    def time(self) -> str:
        """The time of the last occurrence (RFC 3339); empty if unknown."""
        return self.last_timestamp or self.event_time or ""

    def is_recent(self, now: datetime) -> bool:
        """True if the event is recent enough that Kubernetes may still be retrying."""
        at = parse_time(self.time)
        return at is not None and now - at < _RETRIED

    def names(self, pod: str) -> bool:
        """True if the message contains the name of the pod."""
        return bool(re.search(rf"\b{re.escape(pod)}\b", self.message))


def newest_complaint(events: Iterable[Event]) -> Event | None:
    """The newest warning that no pod status repeats; None if there is none."""
    relevant = [event for event in events if event.reason not in SAID_ELSEWHERE]
    return max(relevant, key=lambda event: event.time, default=None)


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    available_replicas: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Deployment(msgspec.Struct, frozen=True):
    status: _Status = msgspec.field(default_factory=_Status)


def discovery_trouble(ctx: ClusterContext) -> str:
    """The cause that Kubernetes reports for Discovery not running; empty if it runs or is starting normally."""
    found = ctx.listers.deployments.list(ctx.namespace, base_labels(ctx.tc, discovery_of(ctx.tc)))
    status = next((obj.decode_as(_Deployment).status for obj in found), _Status())
    if status.available_replicas:
        return ""
    refused = [
        condition.message
        for condition in status.conditions
        if condition.type == "ReplicaFailure" and condition.status == "True"
    ]
    pods = ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, discovery_of(ctx.tc)))
    return next(filter(None, [*refused, *(trouble_of_own(ctx, pod) for pod in pods)]), "")
