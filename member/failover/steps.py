"""The steps that the failovers of all components share (lifecycle.md 9): messages, live reads, cleanup.

Each step of a failover is stored in the status before the next one. Two witnesses see a loss for a whole period → it is
recorded → what the lost member left is removed once that is safe → a substitute starts, as the size of the StatefulSet
depends on the records. When the lost member has returned, the record is dropped, and the substitute with it.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from operator import attrgetter
from uuid import NAMESPACE_OID, uuid5

from apis import predicates
from apis.accessor import component as component_of
from apis.components import component_names
from apis.ordinals import delete_slots, desired_ordinals, spec_ordinals
from apis.times import stamp
from kube.actions import Annotate, Emit
from kube.apply import OwnerGone
from kube.deletion import Destroyer, LiveObject
from kube.errors import NotFound
from kube.events import NORMAL, WARNING
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.actions import Delete
from member.context import ClusterContext
from member.evidence import Evidence, LiveStatus, status_live
from member.failover.witnesses import Failing, desired_pods, is_lost_now
from member.labels import CLEAR_FAILURE_RECORDS
from member.lifecycle.pod_removal import claims_of_templates
from member.naming import ordinal_of, pod_name
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.observed.troubles import removal_by_others
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll

RECOVERY = "Recovery"
UNHEALTHY = "Unhealthy"

_GRACE = 0.1
"""The share of a period during which a starting member cannot be distinguished from a lost one."""


# The members that may be replaced


def limit(ctx: ClusterContext, max_failover_count: int | None) -> int:
    """The number of records that a component may have; 0 if failover is off (9.1, I21, I25)."""
    return (max_failover_count or 0) if ctx.settings.failover.auto else 0


def to_record(failing: Sequence[Failing], records: int, limit: int, period: float) -> Sequence[Failing]:
    """The failing members to record now: lost for a whole period, and within the limit (I21, I22)."""
    due = [each for each in failing if each.lasted >= period]
    return due[: max(limit - records, 0)]


def incident(ctx: ClusterContext, first: str) -> str:
    """An id for this incident, with which the user can declare it over (`failover.recoverByUID`)."""
    what = f"{ctx.owner.metadata.uid}/{first}/{stamp(ctx.deps.clock.wall())}"
    return str(uuid5(NAMESPACE_OID, what))


def substitutes(ctx: ClusterContext, component: str) -> list[str]:
    """The pods that exist only because others are recorded as failed."""
    asked = spec_ordinals(ctx.tc, component)
    extra = (ordinal for ordinal in desired_ordinals(ctx.tc, component) if ordinal not in asked)
    return [pod_name(ctx.tc, component, ordinal) for ordinal in extra]


def given_up(ctx: ClusterContext, component: str, pod: str) -> bool:
    """True if the user has made the ordinal of a pod a delete slot: nothing stands in for the pod."""
    return ordinal_of(pod) in delete_slots(ctx.tc, component)


def remaining(ctx: ClusterContext, component: str, lost: Collection[str]) -> list[str]:
    """The pods that must serve until the lost ones return: the other desired ones and the substitutes."""
    return [*(pod for pod in desired_pods(ctx, component) if pod not in lost), *substitutes(ctx, component)]


def ignorable(ctx: ClusterContext, component: str, lost: Collection[str], serving: Collection[str]) -> set[str]:
    """The pods that a roll may ignore: substitutes that do not serve, and lost pods that have a serving substitute.

    While fewer pods serve than the spec asks for, another restart would do harm, so no further lost pod is ignored
    (F12, I10).
    """
    substitutes_ = set(substitutes(ctx, component))
    stood_in_for = sorted(lost, key=ordinal_of)[: len(substitutes_ & set(serving))]
    return {*stood_in_for, *(substitutes_ - set(serving))}


def all_ready(ctx: ClusterContext, component: str) -> bool:
    """True if all pods that the spec alone asks for are Ready."""
    ready = {
        pod.metadata.name
        for pod in pods_of(ctx, component)
        if pod.decode_as(Pod).is_ready and not pod.metadata.deletion_timestamp
    }
    return ready.issuperset(desired_pods(ctx, component))


# Messages


def still_waiting(
    ctx: ClusterContext, component: str, reason: str, failing: Sequence[Failing], period: float
) -> Outcome:
    """The wait for the first failing member to recover by itself; Done during the first tenth of the period."""
    first = max(failing, key=lambda each: each.lasted)
    if first.lasted < _GRACE * period:
        return Done(retry_after=_GRACE * period - first.lasted)
    others = ", ".join(each.pod for each in failing if each != first)
    what = (
        f"pod {named(ctx, component, first.pod)} has been lost since {stamp(first.since)}"
        f"{f', and so has {others}' if others else ''}; it will be replaced at "
        f"{stamp(first.since + timedelta(seconds=period))} unless it recovers"
    )
    return Waiting(reason, what, _retry_after(ctx, component, period - first.lasted))


def named(ctx: ClusterContext, component: str, pod: str) -> str:
    """A pod's name, with what keeps it from serving if that is known."""
    found = next((each for each in pods_of(ctx, component) if each.metadata.name == pod), None)
    if found is None:
        return pod
    seen = found.decode_as(Pod)
    why = "; ".join(filter(None, (seen.trouble or seen.crashes, removal_by_others(ctx, component, found))))
    return f"{pod} ({why})" if why else pod


def _retry_after(ctx: ClusterContext, component: str, left: float) -> float:
    """Seconds until the next check, at most until the period ends."""
    return min(next_poll(ctx, component), max(left, 0.5))


def limit_reached(ctx: ClusterContext, component: str, records: int, failing: Failing) -> Refused:
    """Refuse to replace more members than the limit allows (F39)."""
    field = component_of(ctx.tc, component).field
    what = (
        f"pod {failing.pod} has been lost since {stamp(failing.since)}, but {records} have been replaced already, as "
        f"many as {field}.maxFailoverCount allows; repair the lost pods, or raise the limit"
    )
    return Refused("FailoverLimit", what)


def substitute_lost(ctx: ClusterContext, component: str, failing: Failing) -> Refused:
    """Refuse to replace a lost substitute, as its own substitute might be lost, too, and so forth (F39)."""
    field = component_of(ctx.tc, component).field
    records = predicates.status_of(ctx.tc, component)
    instead = ", ".join(records.failed_pods) if records else ""
    what = (
        f"pod {named(ctx, component, failing.pod)} replaced the lost {instead} and has been lost itself since "
        f"{stamp(failing.since)}; a substitute is not replaced: repair one of these pods, or raise {field}.replicas"
    )
    return Refused("SubstituteLost", what)


def serving_instead(
    ctx: ClusterContext, component: str, reason: str, records: Collection[str], way_back: str
) -> Outcome:
    """The wait while substitutes serve and nothing else is to do; `records` are the pods that they stand in for."""
    if not records or not predicates.in_phase(ctx.tc, component, "Normal"):
        return Done()
    extra = ", ".join(pod for pod in substitutes(ctx, component) if pod not in records)
    what = f"{extra} replaced the lost {', '.join(sorted(records))}; {way_back}"
    # no event reports that the lost member has returned
    return Waiting(reason, what, next_poll(ctx, component), serves=True)


async def record_event(ctx: ClusterContext, reason: str, message: str, *, is_warning: bool = True) -> None:
    """Emit an event about the cluster."""
    await Emit(ctx.owner, WARNING if is_warning else NORMAL, reason, message)


# Live reads


def live_status(ctx: ClusterContext) -> LiveStatus:
    """Read the status live, as evidence for deletions (F45, I23).

    Raises OwnerGone if the cluster was deleted or recreated, ApiError, TransportError.
    """
    try:
        live = status_live(ctx)
    except NotFound:
        raise OwnerGone(f"the {ctx.tc.kind} was deleted; waiting for the operator's cache to show that") from None
    if live is None:
        raise OwnerGone(
            f"the {ctx.tc.kind} is being deleted or was recreated; waiting for the operator's cache to show that"
        )
    return live


def well_unseen(ctx: ClusterContext, component: str, pods: Iterable[str]) -> Waiting | None:
    """The wait for the cache, if it shows pods as lost that a live read shows to be healthy (F1).

    Raises ApiError, TransportError.
    """
    well = [pod for pod in pods if not is_lost_now(ctx, component, pod)]
    if not well:
        return None
    what = f"{', '.join(well)} runs and is Ready; waiting for the operator's cache to show that"
    return Waiting("CacheOutdated", what, next_poll(ctx, component))


def claim_uids(ctx: ClusterContext, component: str, pod: str) -> dict[str, Json]:
    """The UIDs of a pod's present volume claims, in the form of a record. Raises ApiError, TransportError."""
    return {claim.object.metadata.uid: {} for claim in _claims(ctx, component, pod)}


async def clean_up(ctx: ClusterContext, component: str, pod: str, uids: Collection[str], gone: Evidence) -> None:
    """Delete the volume claims in a record, then their pod; `gone` proves that their data is not needed (I1, I2).

    The pod goes last: a pod that is recreated while the claims exist would use and keep them. A pod that has none of
    these claims is a new one, and stays. Raises Conflict if an object has changed meanwhile, other ApiErrors,
    TransportError, LeaseExpired.
    """
    destroyer = Destroyer(ctx.deps.client)
    claims = [claim for claim in _claims(ctx, component, pod) if claim.object.metadata.uid in uids]
    found = destroyer.observe(PODS, pod, ctx.namespace) if claims else None
    for obj in [*claims, found] if found else claims:
        meta = obj.object.metadata
        if not meta.deletion_timestamp:
            await Delete(obj, gone)
            await record_event(
                ctx, "SuccessfulDelete", f"delete {obj.object.kind} {meta.name}: {gone.what}", is_warning=False
            )


def _claims(ctx: ClusterContext, component: str, pod: str) -> list[LiveObject]:
    """The claims that the StatefulSet's templates created for a pod, read live; the pod itself may be missing."""
    live = ctx.stateful_set(component)
    names = claims_of_templates(live.decode(), pod) if live else ()
    destroyer = Destroyer(ctx.deps.client)
    found = (destroyer.observe(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace) for name in names)
    return [obj for obj in found if obj is not None]


# The user's command


async def clear_requested(ctx: ClusterContext, component: str, has_records: bool) -> bool:
    """True if the user's annotation requests that this component's records be dropped (14).

    The annotation is removed only after the status without records is stored, so that a crash in between loses nothing.
    Raises Conflict, other ApiErrors, TransportError, LeaseExpired.
    """
    command = ctx.tc.metadata.annotations.get(CLEAR_FAILURE_RECORDS)
    known = component_names(attrgetter("replaceable"), ctx.tc.kind)
    if command is None or (command in known and command != component):
        return False
    if command not in known:
        await record_event(
            ctx, "UnknownComponent", f"annotation {CLEAR_FAILURE_RECORDS}: {command!r} is not one of {', '.join(known)}"
        )
    elif has_records:
        ctx.memory.failure_timers.reset(component)
        await record_event(
            ctx,
            RECOVERY,
            f"the failure records of {component} were dropped, as requested by annotation",
            is_warning=False,
        )
        return True
    await Annotate(ctx.resource, ctx.owner, {CLEAR_FAILURE_RECORDS: None})
    return False
