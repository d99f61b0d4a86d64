"""How many replicas a StatefulSet gets in this reconcile (lifecycle.md 8.1, 8.3, 8.4, 8.5, 8.9).

Scale-out, pod by pod: a pod starts only when the ones before it exist, and never on the data of a removed member. The
operator deletes the claims that such a member left, and waits until they are gone (F32).

Scale-in, pod by pod from the highest ordinal down: no pod leaves unless all leaving pods can; `PodRemoval.staying` has
the pods that remain, for each drain. A pod goes once nothing of it is left in the data plane and the live spec asks for
fewer pods. Its claims are marked first, and then the StatefulSet shrinks. Several pods may leave at a time. A
StatefulSet removes its highest ordinals, so a drained pod goes as soon as all above it are drained, even if lower ones
take longer or fail (F37).

If both are pending, the scale-out runs first; it also undoes a scale-in that the user took back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from structlog.contextvars import bound_contextvars

from apis import predicates
from apis.accessor import Component
from apis.accessor import component as component_of
from apis.components import component_type
from apis.ordinals import OrdinalSet, Step, slots_annotation
from dataplane.errors import DataPlaneError
from kube.actions import Decision, Emit
from kube.deletion import Destroyer, LiveObject
from kube.errors import ApiError, Conflict
from kube.events import NORMAL, WARNING
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.actions import Delete
from member.apply.stateful_set import Replicas
from member.context import ClusterContext, OwnContext
from member.evidence import Evidence, spec_or_wait
from member.labels import DELETE_SLOTS, MEMBER_ID, PVC_DEFER_DELETING, STORE_ID, base_labels
from member.lifecycle import pod_removal
from member.lifecycle.pod_removal import PodRemoval, claims_of_templates
from member.naming import pod_name
from member.objects.stateful_set import is_advanced, ordinals_of
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pods import pods_of
from member.observed.status import SCALE, set_phase
from member.outcome import Failed, NotDone, Refused, Waiting, first_retry
from member.polling import next_poll
from ports.transport import TransportError

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
    here, goal = ordinals_of(body), ordinals_of(desired)
    there, steps = here.replicas, here.steps(goal)
    wanted = there + len(steps)
    if not steps:
        # slots without effect follow the spec
        return Replicas.raised(body, goal), None
    if not _all_exist(ctx, component, body):
        what = f"waiting for the {there} pods requested so far to exist"
        return Replicas.unchanged(body), kept_by_lost_nodes(ctx, component, what) or Waiting("ScalingOut", what)
    if waiting := scale_out.allowed(ctx):
        return Replicas.unchanged(body), waiting
    steps = steps[: scale_out.limit(component_of(ctx.tc, component))]
    pods = [pod_name(ctx.tc, component, step.ordinal) for step in steps]
    # check all pods, so that their claims are deleted in parallel
    in_the_way = [await _in_the_way(ctx, component, scale_out, body, pod) for pod in pods]
    for step, obstacle in zip(steps, in_the_way, strict=True):
        if obstacle:
            return Replicas.raised(body, here), obstacle
        here = step.after
    return Replicas.raised(body, here), Waiting("ScalingOut", f"scaling out from {there} to {wanted} pods")


def _all_exist(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if all pods exist, except pods that failover has replaced; on a lost node those may never exist."""
    there, status = body["spec"]["replicas"], predicates.status_of(ctx.tc, component)
    if (body.get("status") or {}).get("replicas") == there:
        return True
    stay = {pod.metadata.name for pod in pods_of(ctx, component) if not pod.metadata.deletion_timestamp}
    missing = {pod_name(ctx.tc, component, ordinal) for ordinal in ordinals_of(body).ordinals} - stay
    return bool(missing) and status is not None and missing.issubset(status.failed_pods)


def next_returning(
    ctx: ClusterContext, component: str, scale_out: ScaleOut, body: Json, wanted: OrdinalSet
) -> Step | None:
    """The next pod that PD counts on but the StatefulSet lacks; None if there is none (I4, R14).

    The pod returns whatever made the StatefulSet too small, and even if the spec asks for fewer pods: without it PD may
    lose its quorum, and a member may leave only by the steps of a scale-in. If PD does not answer and the status lists
    no member, an unmarked volume claim counts as a member. Raises ApiError, TransportError.
    """
    here, status = ordinals_of(body), predicates.status_of(ctx.tc, component)
    if status is None or not component_type(component).claims.hold_data:
        return None
    joining = [step for step in here.steps(wanted) if step.ordinal in wanted]
    steps = joining or _single_steps(here)
    pods = {step.ordinal: pod_name(ctx.tc, component, step.ordinal) for step in steps}
    members = {ordinal for ordinal, pod in pods.items() if scale_out.is_member(ctx, pod)}
    unknown = set() if status.is_current or status.health else {ordinal for ordinal in pods if ordinal in wanted}
    if not members | unknown:
        return None
    found = {ordinal: pod_removal.live(ctx, component, body, ordinal) for ordinal in pods}
    kept = members | {ordinal for ordinal in unknown if found[ordinal].claims}
    # a pod that has left, or is leaving, is removed with its volume first (F32)
    returning = {ordinal for ordinal in kept if not found[ordinal].begun}
    if joining:
        return steps[0] if returning and not found[steps[0].ordinal].begun else None
    return next((step for step in steps if step.ordinal in returning), None)


def _single_steps(here: OrdinalSet) -> list[Step]:
    """Each pod that could join alone: one of a slot, or one above all others."""
    free = [*(slot for slot in sorted(here.slots) if slot < here.bound), here.bound]
    return [Step(each, OrdinalSet(here.replicas + 1, here.slots - {each})) for each in free]


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


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """How a component gives up pods.

    `limit`: how many may leave at a time. `drain` takes a pod out of the data plane step by step, and returns Evidence
    once nothing of it is left there. `cancel` undoes such steps if the pod is to stay: it returns None once all is as
    before, and Evidence if the pod has already left.
    """

    limit: Callable[[Component], int]
    drain: Callable[[PodRemoval], Decision[Evidence | NotDone]]
    cancel: Callable[[PodRemoval], Decision[Evidence | NotDone | None]]


async def next_lower_replicas(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, wanted: OrdinalSet
) -> tuple[Replicas, NotDone]:
    """The replicas that the StatefulSet gets in this reconcile, and what the remaining scale-in waits for."""
    here = ordinals_of(body)
    chosen = here.steps(wanted)[: scale_in.limit(component_of(ctx.tc, component))]
    gone: list[Evidence] = []
    unfinished: list[NotDone] = []
    for step in chosen:
        left = await _attempt(_drain_one(ctx, component, scale_in, body, step.ordinal, staying=wanted))
        if not isinstance(left, Evidence):
            unfinished.append(left)
        elif not unfinished:
            gone.append(left)
    going = Waiting("ScalingIn", f"scaling in from {here.replicas} to {wanted.replicas} pods")
    return Replicas.lowered(body, gone, wanted), _joined(unfinished) if unfinished else going


async def cancel_removals(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, kept: Sequence[int]
) -> tuple[int | None, NotDone | None]:
    """Cancel scale-ins that were begun among the `kept` pods; the first that has already left the data plane (F36).

    That pod must go: its data cannot return.
    """
    for ordinal in kept:
        # the cache may show marks of a claim that has been deleted
        if not pod_removal.cached(ctx, component, body, ordinal).begun:
            continue
        answer = await _attempt(_cancel_one(ctx, component, scale_in, body, ordinal))
        if isinstance(answer, Evidence):
            return ordinal, None
        if answer is not None:
            return None, answer
    return None, None


async def _drain_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int, *, staying: OrdinalSet
) -> Evidence | NotDone:
    removal = pod_removal.live(ctx, component, body, ordinal, staying)
    with bound_contextvars(pod=removal.name):
        left = await scale_in.drain(removal)
        if not isinstance(left, Evidence):
            return left
        # a pod that the data plane does not know yet has nothing to drain, and the user may have just asked for it
        wanted = spec_or_wait(ctx, next_poll(ctx, component))
        if isinstance(wanted, Waiting):
            return wanted
        # read the claims again, as this reconcile has written to them
        await pod_removal.live(ctx, component, body, ordinal).defer_deleting()
        return left & wanted


async def _cancel_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int
) -> Evidence | NotDone | None:
    removal = pod_removal.live(ctx, component, body, ordinal)
    with bound_contextvars(pod=removal.name):
        return await scale_in.cancel(removal) if removal.begun else None


async def _attempt(decision: Decision[_T]) -> _T | Waiting | Failed:
    """The conclusion for one pod; an error becomes an outcome, so that the other pods continue."""
    try:
        return await decision
    except Conflict as error:
        return Waiting("Conflict", f"another client changed the object at the same time: {error}", retry_after=0.5)
    except (ApiError, TransportError, DataPlaneError) as error:
        return Failed(type(error).__name__, str(error))


def _joined(unfinished: Sequence[NotDone]) -> NotDone:
    """One outcome for several pods: the worst kind, with the messages of all outcomes of that kind."""
    for kind in (Refused, Failed, Waiting):
        if alike := [outcome for outcome in unfinished if isinstance(outcome, kind)]:
            break
    message = "; ".join(dict.fromkeys(outcome.message for outcome in alike))
    if isinstance(alike[0], Failed):
        return Failed(alike[0].reason, message)
    return type(alike[0])(alike[0].reason, message, first_retry(unfinished))


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a component grows and shrinks."""

    out: ScaleOut
    in_: ScaleIn


@dataclass(frozen=True, slots=True)
class Size:
    """The replicas for this reconcile, and what the StatefulSet waits for to get the wanted number."""

    replicas: Replicas
    outcome: NotDone | None = None


async def next_size(ctx: ClusterContext, component: str, scaling: Scaling, body: Json, desired: Json) -> Size:
    """Decide on the replicas. Raises ApiError, TransportError, DataPlaneError."""
    here, wanted = ordinals_of(body), ordinals_of(desired)
    if step := next_returning(ctx, component, scaling.out, body, wanted):
        what = f"recreating pod {pod_name(ctx.tc, component, step.ordinal)}, whose data is still in use"
        return Size(Replicas.raised(body, step.after), Waiting("ScalingOut", what))
    kept = sorted(set(here.ordinals).intersection(wanted.ordinals))
    left, unfinished = await cancel_removals(ctx, component, scaling.in_, body, kept)
    if unfinished:
        return Size(Replicas.unchanged(body), unfinished)
    if left is not None:
        set_phase(ctx, component, SCALE)
        return await _finish_removal(ctx, component, scaling, body, left)
    if any(step.ordinal not in wanted for step in here.steps(wanted)):
        return Size(*await next_lower_replicas(ctx, component, scaling.in_, body, wanted))
    return Size(*await next_replicas(ctx, component, scaling.out, body, desired))


async def warn_of_slots(ctx: ClusterContext, component: str, desired: Json, body: Json | None) -> None:
    """Warn, when a list of ordinals to skip reaches the StatefulSet, that it has no effect (4.4 BETTER)."""
    slots = _slots(desired)
    if slots is None or is_advanced(desired) or (body is not None and _slots(body) == slots):
        return
    what = (
        f"annotation {slots_annotation(component)}={slots} has no effect: a StatefulSet always removes its highest "
        "ordinal; remove the annotation and set only the replicas"
    )
    await Emit(ctx.owner, WARNING, "DeleteSlotsIgnored", what)


def _slots(stateful_set: Json) -> str | None:
    slots: str | None = (stateful_set["metadata"].get("annotations") or {}).get(DELETE_SLOTS)
    return slots


async def _finish_removal(ctx: ClusterContext, component: str, scaling: Scaling, body: Json, left: int) -> Size:
    """Remove a pod that has already left the data plane; it is recreated with empty volumes afterwards (F32, I32).

    All pods above it go with it, unless the StatefulSet is an Advanced one, which can leave out this pod alone.
    """
    here = ordinals_of(body)
    rest = OrdinalSet(here.replicas - 1, here.slots | {left}) if is_advanced(body) else OrdinalSet(left)
    replicas, outcome = await next_lower_replicas(ctx, component, scaling.in_, body, rest)
    if not isinstance(outcome, Waiting):
        return Size(replicas, outcome)
    pod = pod_name(ctx.tc, component, left)
    what = f"pod {pod} had already left the data plane; recreating it with empty volumes: {outcome.message}"
    return Size(replicas, Waiting(outcome.reason, what, outcome.retry_after))
