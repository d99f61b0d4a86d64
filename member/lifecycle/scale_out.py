"""Scale-out, pod by pod (lifecycle.md 8.1, 8.3, 8.4, 8.9).

A pod starts only when the ones before it exist, and never on the data of a removed member: the operator deletes the
claims that such a member left, and waits until they are gone (F32).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apis import predicates
from apis.accessor import Component
from apis.accessor import component as component_of
from apis.components import component_type
from apis.ordinals import ordinals
from kube.actions import Emit
from kube.deletion import Destroyer, LiveObject
from kube.events import NORMAL
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.actions import Delete
from member.apply.stateful_set import Replicas
from member.context import ClusterContext, OwnContext
from member.evidence import Evidence, spec_or_wait
from member.labels import MEMBER_ID, PVC_DEFER_DELETING, STORE_ID, base_labels
from member.lifecycle import pod_removal
from member.lifecycle.pod_removal import claims_of_templates
from member.naming import pod_name
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pods import pods_of
from member.outcome import Refused, Waiting
from member.polling import next_poll

_RETRY = 10.0
"""Seconds until the next check of a claim that the user has to judge; no event reports its deletion."""


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """How a component grows.

    `limit`: how many pods may start at a time. `allowed`: what the scale-out must wait for. `is_member`: True if PD
    knows the pod, so that its old volumes belong to it. `volumes_unused`: evidence that nothing in the data plane needs
    a pod's volumes.
    """

    limit: Callable[[Component], int]
    allowed: Callable[[OwnContext], Waiting | None]
    is_member: Callable[[OwnContext, str], bool]
    volumes_unused: Callable[[OwnContext, str], Evidence | None]


async def next_replicas(
    ctx: ClusterContext, component: str, scale_out: ScaleOut, body: Json, desired: Json
) -> tuple[Replicas, Waiting | Refused | None]:
    """The replicas that the StatefulSet gets in this reconcile, and what the remaining scale-out waits for.

    Raises ApiError, TransportError, DataPlaneError.
    """
    there, wanted = body["spec"]["replicas"], desired["spec"]["replicas"]
    if wanted <= there:
        return Replicas.unchanged(body), None
    if not _all_exist(ctx, component, body):
        what = f"waiting for the {there} pods requested so far to exist"
        return Replicas.unchanged(body), kept_by_lost_nodes(ctx, component, what) or Waiting("ScalingOut", what)
    if waiting := scale_out.allowed(ctx):
        return Replicas.unchanged(body), waiting
    step = min(wanted, there + scale_out.limit(component_of(ctx.tc, component)))
    pods = [(ordinal, pod_name(ctx.tc, component, ordinal)) for ordinal in ordinals(step)[there:]]
    # check all pods, so that their claims are deleted in parallel
    in_the_way = [await _in_the_way(ctx, component, scale_out, body, pod) for _, pod in pods]
    for (ordinal, _), obstacle in zip(pods, in_the_way, strict=True):
        if obstacle:
            return Replicas.raised(body, ordinal), obstacle
    return Replicas.raised(body, step), Waiting("ScalingOut", f"scaling out from {there} to {wanted} pods")


def _all_exist(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if all pods exist, except pods that failover has replaced; on a lost node those may never exist."""
    there, status = body["spec"]["replicas"], predicates.status_of(ctx.tc, component)
    if (body.get("status") or {}).get("replicas") == there:
        return True
    stay = {pod.metadata.name for pod in pods_of(ctx, component) if not pod.metadata.deletion_timestamp}
    missing = {pod_name(ctx.tc, component, ordinal) for ordinal in range(there)} - stay
    return bool(missing) and status is not None and missing.issubset(status.failed_pods)


def next_returning(ctx: ClusterContext, component: str, scale_out: ScaleOut, body: Json, wanted: int) -> str:
    """The next pod that PD counts on but the StatefulSet is too small for; empty if there is none (I4, R14).

    The pod returns whatever made the StatefulSet too small, and even if the spec asks for fewer pods: without it PD may
    lose its quorum, and a member may leave only by the steps of a scale-in. If PD does not answer and the status lists
    no member, an unmarked volume claim counts as a member. Raises ApiError, TransportError.
    """
    there, status = body["spec"]["replicas"], predicates.status_of(ctx.tc, component)
    if status is None or not component_type(component).claims.hold_data:
        return ""
    pods = {ordinal: pod_name(ctx.tc, component, ordinal) for ordinal in range(there, max(wanted, there + 1))}
    members = {ordinal for ordinal, pod in pods.items() if scale_out.is_member(ctx, pod)}
    unknown = set() if status.is_current or status.health else {ordinal for ordinal in pods if ordinal < wanted}
    if not members | unknown:
        return ""
    found = {ordinal: pod_removal.live(ctx, component, body, ordinal) for ordinal in pods}
    kept = members | {ordinal for ordinal in unknown if found[ordinal].claims}
    # a pod that has left, or is leaving, is removed with its volume first (F32)
    returns = not found[there].begun and any(not found[ordinal].begun for ordinal in kept)
    return pods[there] if returns else ""


async def _in_the_way(
    ctx: ClusterContext, component: str, scale_out: ScaleOut, body: Json, pod: str
) -> Waiting | Refused | None:
    """What keeps a pod from starting: a claim of its name, read live, holds the data of a removed member (F1)."""
    destroyer = Destroyer(ctx.deps.client)
    names = claims_of_templates(body, pod)
    claims = [claim for name in names if (claim := destroyer.observe(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace))]
    staying = [claim for claim in claims if not claim.object.metadata.deletion_timestamp]
    marked = [claim for claim in staying if PVC_DEFER_DELETING in claim.object.metadata.annotations]
    kept = [claim for claim in staying if claim not in marked and not _never_joined(ctx, component, claim)]
    if kept and not scale_out.is_member(ctx, pod):
        return _of_nobody(component, pod, kept)
    if marked and (waiting := await _delete(ctx, component, scale_out, marked, pod)):
        return waiting
    if len(staying) < len(claims):
        return _going(ctx, component, [claim for claim in claims if claim not in staying], pod)
    return None


def _never_joined(ctx: ClusterContext, component: str, claim: LiveObject) -> bool:
    """True if a claim belongs to a pod that went before it became a member: the pod may return and use it."""
    given = claim.object.metadata.labels
    ours = base_labels(ctx.tc, component).items() <= given.items()
    return ours and MEMBER_ID not in given and STORE_ID not in given


def _of_nobody(component: str, pod: str, claims: Sequence[LiveObject]) -> Refused:
    """Refuse to start a pod on data of unknown origin, which no scale-in has released (8.4, 8.9)."""
    what = (
        f"{_named(claims)} exists, but pod {pod} is not a {component} member; inspect its data, then delete it so that "
        "the pod can start"
    )
    return Refused("StalePVC", what, _RETRY)


def _going(ctx: ClusterContext, component: str, claims: Sequence[LiveObject], pod: str) -> Waiting | Refused:
    what = f"waiting for {_named(claims)} to be deleted before starting pod {pod}"
    return kept_by_lost_nodes(ctx, component, what) or Waiting("StalePVC", what, next_poll(ctx, component))


async def _delete(
    ctx: ClusterContext, component: str, scale_out: ScaleOut, claims: Sequence[LiveObject], pod: str
) -> Waiting | Refused | None:
    """Delete the claims of a removed member once nothing needs them (I1, I2); None if the member still exists."""
    again = next_poll(ctx, component)
    volumes_unused = scale_out.volumes_unused(ctx, pod)
    if volumes_unused is None:
        if scale_out.is_member(ctx, pod):
            return None
        return Waiting("StalePVC", f"waiting to hear whether pod {pod} is still a member", again)
    wanted = spec_or_wait(ctx, again)
    if isinstance(wanted, Waiting):
        return wanted
    for claim in claims:
        await Delete(claim, volumes_unused & wanted)
        what = f"delete PersistentVolumeClaim {claim.object.metadata.name} in {ctx.tc.kind} {ctx.name} successful"
        await Emit(ctx.owner, NORMAL, "SuccessfulDelete", what)
    return _going(ctx, component, claims, pod)


def _named(claims: Sequence[LiveObject]) -> str:
    return f"PersistentVolumeClaim {', '.join(claim.object.metadata.name for claim in claims)}"
