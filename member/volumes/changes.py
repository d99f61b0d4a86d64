"""Changes of volumes, for running and for future pods (lifecycle.md 10.2, F47, F48).

Claims grow whatever the component does: a full disk cannot wait for a roll or for leaders to move. The StatefulSet,
whose claim templates are immutable, is recreated when the component is idle. If a volume cannot become what the spec
wants, the operator refuses the whole change before any write, or replaces the volume if the user allows it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from apis import predicates
from apis.accessor import Component, workloads
from apis.times import stamp
from kube.actions import Apply
from kube.errors import ApiError
from kube.objects import Json, Object, digest
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member import labels
from member.apply.claim_templates import names, sizes_differ
from member.apply.writes import annotate_owner
from member.context import ClusterContext
from member.evidence import spec_or_wait
from member.lifecycle.creation import delete_keeping_pods
from member.naming import pod_name, pvc_name
from member.objects.stateful_set import ordinals_of
from member.objects.volumes import has_storage, has_storage_claims
from member.observed.claims import Claim, desired_templates, desired_volumes
from member.observed.troubles import trouble_of_growth
from member.outcome import SOONEST, Done, Outcome, Refused, Wait, Waiting, in_time_for
from member.polling import poll_since
from member.volumes import replacement
from member.volumes import replacement as volume_replacement
from member.volumes.growth import (
    Ask,
    Begin,
    Finish,
    Refuse,
    Settled,
    Step,
    VolumeClaim,
    Wanted,
    infeasibility,
    next_step,
    reasons,
)
from member.volumes.replacement import REFUSED

GROWING = "GrowingVolumes"

_LOOK_AGAIN = 10.0
"""Seconds until the next check: no event reports a new storage class, and drivers take minutes."""
_INFEASIBLE = "Infeasible"
_PENDING = "Pending"


@dataclass(frozen=True, slots=True)
class Move:
    """A claim of a pod, its wanted state, and the next step towards it."""

    pod: str
    cached: Object
    claim: VolumeClaim
    wanted: Wanted
    step: Step


async def act(ctx: ClusterContext) -> Outcome:
    """Bring the volumes of all components one step closer to their spec; an error in one does not stop the others.

    If a component refuses its spec, that report also contains the errors of the other components. Raises OwnerGone,
    ApiError, TransportError.
    """
    if ctx.tc.spec.paused:
        return Done()
    outcomes: list[Outcome] = []
    errors: dict[str, ApiError] = {}
    for spec in workloads(ctx.tc):
        if spec.name in ctx.removed or not (has_storage(spec.spec) or has_storage_claims(spec.spec)):
            continue
        try:
            outcomes.append(await _change(ctx, spec))
        except ApiError as error:
            errors[spec.field] = error
    outcome = _most_telling(outcomes)
    return _with_errors(outcome, errors) if errors else outcome


def _with_errors(outcome: Outcome, errors: Mapping[str, ApiError]) -> Refused:
    """A refusal, which needs the user, with the errors by field; raises the first error if nothing is refused."""
    if not isinstance(outcome, Refused):
        raise next(iter(errors.values()))
    failed = (f"{field}: a request for its volumes failed: {error}" for field, error in errors.items())
    again = min(outcome.retry_after or _LOOK_AGAIN, _LOOK_AGAIN)
    return replace(outcome, message="; ".join((outcome.message, *failed)), retry_after=again)


def _most_telling(outcomes: Sequence[Outcome]) -> Outcome:
    """All refusals in one, with the reason of the first; else the first wait."""
    if refusals := [outcome for outcome in outcomes if isinstance(outcome, Refused)]:
        refused = Refused(refusals[0].reason, "; ".join(refusal.message for refusal in refusals))
        return in_time_for(refused, *outcomes)
    return next((outcome for outcome in outcomes if isinstance(outcome, Waiting)), Done())


async def _change(ctx: ClusterContext, spec: Component) -> Outcome:
    live = ctx.stateful_set(spec.name)
    if live is None or live.metadata.deletion_timestamp or predicates.in_phase(ctx.tc, spec.name, "Suspend"):
        return Done()
    body, wanted = live.decode(), {"spec": {"volumeClaimTemplates": desired_templates(ctx.tc, spec.name)}}
    if sorted(names(body)) != sorted(names(wanted)):
        return Done("volumes were added or removed, which the component itself refuses")
    seen = list(_moves(ctx, spec, body))
    moves = [move for move in seen if not isinstance(move.step, Settled)]
    refusals = {move.pod: move.step for move in moves if isinstance(move.step, Refuse)}
    judged = moves if volume_replacement.is_on(ctx) else ()
    infeasible = {move.pod: why for move in judged if (why := infeasibility(move.claim, move.wanted))}
    stale = {pod: step.why for pod, step in refusals.items()} | infeasible
    in_vain = not sizes_differ(body, wanted) and any(_is_newly_stale(move, live) for move in moves)
    why = "; ".join([*reasons(refusals.values()), *dict.fromkeys(infeasible.values())])
    refused = volume_replacement.refusal(ctx, spec, why, digest(wanted), in_vain=in_vain) if stale else None
    if stale and refused is None:
        refused = _without_class(ctx, spec, moves)
    blocked = refused or _unconfirmed(ctx, moves)
    if blocked is None:
        for move in moves:
            await _carry_out(ctx, move)
    classes = blocked or await change_classes(_classes(ctx, spec, seen))
    if blocked or isinstance(classes, Refused):
        return classes
    if sizes_differ(body, wanted):
        return await _recreate(ctx, spec.name, live, body)
    await annotate_owner(ctx, {labels.config_map_before_delete(spec.name): None})
    all_seen = len(seen) == body["spec"]["replicas"] * len(wanted["spec"]["volumeClaimTemplates"])
    remaking = None if all_seen else await replacement.remake(ctx, spec, body)
    if remaking or stale:
        return remaking or await volume_replacement.replace(ctx, spec, body, stale)
    unfinished = volume_replacement.finish(ctx, spec.name, all_seen=all_seen)
    steps = (unfinished, _growing(ctx, moves), classes)
    return in_time_for(next((step for step in steps if not isinstance(step, Done)), Done()), *steps)


def _unconfirmed(ctx: ClusterContext, moves: Sequence[Move]) -> Waiting | None:
    """The wait for a cache that shows another spec than the API server, if a volume is to grow: it never shrinks."""
    if not any(isinstance(move.step, Begin | Ask) for move in moves):
        return None
    wanted = spec_or_wait(ctx, SOONEST)
    return wanted if isinstance(wanted, Waiting) else None


def _without_class(ctx: ClusterContext, spec: Component, moves: Sequence[Move]) -> Refused | None:
    """The refusal to replace volumes if the wanted storage class does not exist: the spare pod would wait forever."""
    classes = ctx.listers.storage_classes
    if classes is None:
        return None
    for name in dict.fromkeys(move.wanted.storage_class for move in moves):
        if name and classes.get("", name) is None:
            what = f"{spec.field}: storage class {name} does not exist, so no volume of it can replace another"
            return Refused(REFUSED, f"{what}; create it, or name another one", _LOOK_AGAIN)
    return None


def _is_newly_stale(move: Move, stateful_set: Object) -> bool:
    """True if a claim cannot become what is wanted although the present StatefulSet created it."""
    made, since = move.cached.metadata.creation_timestamp, stateful_set.metadata.creation_timestamp
    return isinstance(move.step, Refuse) and (made or "") >= (since or "")


def _moves(ctx: ClusterContext, spec: Component, body: Json) -> Iterator[Move]:
    """The StatefulSet's claims that the cache shows as bound; others follow once they are bound."""
    now, wanted = ctx.deps.clock.wall, desired_volumes(ctx.tc, spec.name)
    for ordinal in ordinals_of(body).ordinals:
        pod = pod_name(ctx.tc, spec.name, ordinal)
        for volume in wanted:
            cached = ctx.listers.persistent_volume_claims.get(ctx.namespace, pvc_name(volume.name, pod))
            if cached is None or cached.metadata.deletion_timestamp or not cached.decode_as(Claim).is_bound:
                continue
            claim = _read(ctx, cached)
            class_field = f"{_field(spec, volume.name)}.storageClassName"
            goal = Wanted(_size_field(spec, volume.name), volume.size, class_field, volume.storage_class)
            yield Move(pod, cached, claim, goal, next_step(claim, goal, now))


@dataclass(frozen=True, slots=True)
class ClaimClass:
    """A cached bound claim, and the class that the spec's `field` names; an empty class leaves the choice open.

    `written` is True if this reconcile has written to the claim, so that the cached claim is outdated.
    """

    cached: Object
    wanted: str
    field: str
    written: bool = False


async def change_classes(claims: Iterable[ClaimClass]) -> Outcome:
    """Write the wanted classes into claims, and report their progress. Raises ApiError, TransportError.

    Kubernetes and its storage driver change the class of a claim in place (lifecycle.md 10.3). As in v1.6, the operator
    waits for the change only if Kubernetes reports that it is in progress or impossible.
    """
    waiting: Outcome = Done()
    for claim in claims:
        outcome = await _change_class(claim)
        if isinstance(outcome, Refused):
            return outcome
        waiting = outcome if isinstance(waiting, Done) else waiting
    return waiting


async def _change_class(each: ClaimClass) -> Outcome:
    name, claim = each.cached.metadata.name, each.cached.decode_as(Claim)
    if not each.wanted or each.written:
        return Done()
    if claim.spec.volume_attributes_class_name != each.wanted:
        return await _request_class(each)
    under_way = claim.status.modify_volume_status
    if under_way.target_volume_attributes_class_name != each.wanted:
        return Done()
    what = f"PersistentVolumeClaim {name} to get volume attributes class {each.wanted}"
    if under_way.status == _INFEASIBLE:
        return Refused("VolumeCantChange", f"{each.field}: the storage driver refuses {what}; name another class")
    why = "; does the class exist, and is it of this driver?" if under_way.status == _PENDING else ""
    return Waiting("GrowingVolumes", f"waiting for {what}{why}", _LOOK_AGAIN, serves=True)


async def _request_class(each: ClaimClass) -> Outcome:
    meta = each.cached.metadata
    asked = {
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": {"volumeAttributesClassName": each.wanted},
    }
    answer = await Apply(PERSISTENT_VOLUME_CLAIMS, asked, each.cached)
    if answer.decode_as(Claim).spec.volume_attributes_class_name == each.wanted:
        return Done()
    what = f"PersistentVolumeClaim {meta.name} does not keep a volume attributes class in this Kubernetes cluster"
    return Refused("VolumeCantChange", f"{each.field}: {what}; remove it, or have VolumeAttributesClass switched on")


def _classes(ctx: ClusterContext, spec: Component, seen: Sequence[Move]) -> Iterator[ClaimClass]:
    """The volume attributes classes of the claims."""
    wanted = {volume.name: volume.attributes_class for volume in desired_volumes(ctx.tc, spec.name)}
    for move in seen:
        volume = move.claim.name.removesuffix(f"-{move.pod}")
        written = isinstance(move.step, Begin | Ask | Finish)
        yield ClaimClass(move.cached, wanted[volume], f"{_field(spec, volume)}.volumeAttributesClassName", written)


def _size_field(spec: Component, volume: str) -> str:
    if has_storage_claims(spec.spec):
        return f"{_field(spec, volume)}.resources.requests.storage"
    return (
        f"{_field(spec, volume)}.{spec.workload.data_size_path if volume == spec.type.data_volume else 'storageSize'}"
    )


def _field(spec: Component, volume: str) -> str:
    """The path of a volume in the spec."""
    if has_storage_claims(spec.spec):
        return f"{spec.field}.storageClaims[{volume.removeprefix('data')}]"
    if volume == spec.type.data_volume:
        return spec.field
    return f"{spec.field}.storageVolumes[{volume.removeprefix(f'{spec.name}-')}]"


def _read(ctx: ClusterContext, cached: Object) -> VolumeClaim:
    claim, annotations = cached.decode_as(Claim), cached.metadata.annotations
    # if a cloud has changed the claim's class, v1.6 has recorded the new one
    storage_class = annotations.get(labels.STATUS_STORAGE_CLASS) or claim.spec.storage_class_name
    return VolumeClaim(
        name=cached.metadata.name,
        requested=claim.spec.resources.requests.storage,
        capacity=claim.status.capacity.storage or claim.spec.resources.requests.storage,
        storage_class=storage_class,
        can_grow=_can_grow(ctx, claim.spec.storage_class_name),
        refused_size=claim.refused_size,
        spec_revision=annotations.get(labels.SPEC_REVISION, ""),
        spec_size=annotations.get(labels.SPEC_STORAGE_SIZE, ""),
        status_revision=annotations.get(labels.STATUS_REVISION, ""),
        status_size=annotations.get(labels.STATUS_STORAGE_SIZE, ""),
        changed_at=annotations.get(labels.STATUS_LAST_TRANSITION, ""),
    )


class _StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    allow_volume_expansion: bool | None = None


def _can_grow(ctx: ClusterContext, name: str) -> bool | None:
    """The class's allowVolumeExpansion; None if the operator may not read classes: then the API server decides."""
    if ctx.listers.storage_classes is None:
        return None
    found = ctx.listers.storage_classes.get("", name)
    return found is not None and bool(found.decode_as(_StorageClass).allow_volume_expansion)


async def _carry_out(ctx: ClusterContext, move: Move) -> None:
    claim, wanted, now = move.claim, move.wanted, stamp(ctx.deps.clock.wall())
    asked: Json = {"resources": {"requests": {"storage": wanted.size}}}
    match move.step:
        case Begin(revision):
            noted = {
                labels.SPEC_REVISION: str(revision),
                labels.SPEC_STORAGE_SIZE: wanted.size,
                labels.SPEC_STORAGE_CLASS: claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            await _patch(ctx, move.cached, {"metadata": {"annotations": noted}, "spec": asked})
        case Ask():
            await _patch(ctx, move.cached, {"spec": asked})
        case Finish():
            arrived = {
                labels.STATUS_REVISION: claim.spec_revision,
                labels.STATUS_STORAGE_SIZE: claim.spec_size,
                labels.STATUS_STORAGE_CLASS: claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            await _patch(ctx, move.cached, {"metadata": {"annotations": arrived}})


async def _patch(ctx: ClusterContext, cached: Object, fields: Json) -> None:
    name = {"name": cached.metadata.name, "namespace": ctx.namespace}
    metadata = fields.get("metadata", {}) | name
    await Apply(PERSISTENT_VOLUME_CLAIMS, fields | {"metadata": metadata}, cached)


async def _recreate(ctx: ClusterContext, component: str, live: Object, body: Json) -> Waiting:
    """Recreate the StatefulSet when the component is idle; until then, wait."""
    if not volume_replacement.is_idle(ctx, component, body):
        return Waiting(
            GROWING, f"waiting until {component} is idle before recreating its StatefulSet for its new volumes"
        )
    return await delete_keeping_pods(ctx, component, live)


def _growing(ctx: ClusterContext, moves: Sequence[Move]) -> Outcome:
    if not moves:
        return Done()
    again = poll_since(ctx, moves[0].claim.changed_at)
    for move in sorted(moves, key=lambda move: not infeasibility(move.claim, move.wanted)):
        if isinstance(move.step, Wait):
            trouble = "" if move.step.seconds else trouble_of_growth(ctx, move.cached)
            what = f"{move.step.what} ({trouble})" if trouble else move.step.what
            return Waiting(GROWING, what, move.step.seconds or again)
    return Waiting(GROWING, f"changing {', '.join(move.claim.name for move in moves)}", again)
