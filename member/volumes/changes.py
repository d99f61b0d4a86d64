"""Changes of volumes, for running and for future pods (lifecycle.md 10.2, F47, F48).

Claims grow whatever the component does: a full disk cannot wait for a roll or for leaders to move. The StatefulSet,
whose claim templates are immutable, is recreated when the component is idle. If a volume cannot become what the spec
wants, the operator refuses the whole change before any write, or replaces the volume if the user allows it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from apis import predicates
from apis.accessor import Component, find, workloads
from apis.times import stamp
from kube.actions import Apply, Create
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.objects import Json, Object, digest
from kube.resources import PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTRIBUTES_CLASSES
from member import labels
from member.apply.claim_templates import names, sizes_differ
from member.apply.writes import annotate_owner
from member.context import ClusterContext
from member.evidence import spec_or_wait
from member.lifecycle.creation import delete_keeping_pods
from member.naming import pvc_name
from member.objects.stateful_set import ordinals_of
from member.objects.volumes import has_storage, has_storage_claims
from member.observed.claims import Claim, DesiredVolume, designed_templates, designed_volumes, storage_class_of
from member.observed.status import image_of
from member.observed.troubles import trouble_of_growth
from member.outcome import SOONEST, Done, Outcome, Refused, Wait, Waiting, in_time_for
from member.polling import poll_since
from member.volumes import replacement as volume_replacement
from member.volumes.growth import (
    INFEASIBLE,
    PENDING,
    Ask,
    Begin,
    Finish,
    Refuse,
    Settled,
    Step,
    StorageClass,
    VolumeClaim,
    WaitForClass,
    Wanted,
    attributes_class,
    changes_class,
    infeasibility,
    is_ours,
    next_step,
    obstacle,
    reasons,
)
from member.volumes.replacement import REFUSED

GROWING = "GrowingVolumes"
MODIFYING = "ModifyingVolumes"

_LOOK_AGAIN = 10.0
"""Seconds until the next check: no event reports a new storage class, and drivers take minutes."""

_BEFORE_RESTART = "storage class before a restart"
_LIMIT = 600.0
"""Seconds that a restart waits for another storage class; drivers take minutes."""


@dataclass(frozen=True, slots=True)
class BoundClaim:
    """A cached bound claim of a pod, and what the spec wants of it."""

    pod: str
    cached: Object
    volume: DesiredVolume

    @property
    def is_settled(self) -> bool:
        """True if the claim itself shows that no change is wanted or under way."""
        claim, annotations, volume = self.cached.decode_as(Claim), self.cached.metadata.annotations, self.volume
        return (
            claim.spec.resources.requests.storage == claim.status.capacity.storage == volume.size
            and annotations.get(labels.STATUS_STORAGE_SIZE, volume.size) == volume.size
            and annotations.get(labels.SPEC_REVISION) == annotations.get(labels.STATUS_REVISION)
            and volume.storage_class in ("", storage_class_of(self.cached))
        )


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
    name = spec.name
    live = ctx.stateful_set(name)
    if live is None or live.metadata.deletion_timestamp or predicates.in_phase(ctx.tc, name, "Suspend"):
        return Done()
    body, wanted = ctx.tree(live), designed_templates(ctx, name)
    if sorted(names(body)) != sorted(names(wanted)):
        return Done("volumes were added or removed, which the component itself refuses")
    bound = _bound(ctx, spec, live, body)
    moves = _in_turn(ctx, spec, body, _moves(ctx, spec, bound))
    refusals = {move.pod: move.step for move in moves if isinstance(move.step, Refuse)}
    judged = moves if volume_replacement.is_on(ctx) else ()
    infeasible = {move.pod: why for move in judged if (why := infeasibility(move.claim, move.wanted))}
    stale = {pod: step.why for pod, step in refusals.items()} | infeasible
    resized = sizes_differ(body, wanted)
    in_vain = not resized and any(_is_newly_stale(move, live) for move in moves)
    why = "; ".join([*reasons(refusals.values()), *dict.fromkeys(infeasible.values())])
    refused = volume_replacement.refusal(ctx, spec, why, digest(wanted), in_vain=in_vain) if stale else None
    if stale and refused is None:
        refused = _without_class(ctx, spec, moves)
    blocked = refused or _unconfirmed(ctx, moves) or await _provide_classes(ctx, moves)
    if blocked is None:
        for move in moves:
            await _carry_out(ctx, move)
    classes = blocked or await change_classes(_classes(spec, bound, moves))
    if blocked or isinstance(classes, Refused):
        return classes
    if resized:
        return await _recreate(ctx, name, live, body)
    await annotate_owner(ctx, {labels.config_map_before_delete(name): None})
    all_seen = len(bound) == body["spec"]["replicas"] * len(wanted["spec"]["volumeClaimTemplates"])
    remaking = None if all_seen else await volume_replacement.remake(ctx, spec, body)
    if remaking or stale:
        return remaking or await volume_replacement.replace(ctx, spec, body, stale)
    unfinished = volume_replacement.finish(ctx, name, all_seen=all_seen)
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


def _bound(ctx: ClusterContext, spec: Component, live: Object, body: Json) -> list[BoundClaim]:
    """The StatefulSet's claims that the cache shows as bound; others follow once they are bound."""
    pods = [f"{live.metadata.name}-{ordinal}" for ordinal in ordinals_of(body).ordinals]
    volumes, get = designed_volumes(ctx, spec.name), ctx.listers.persistent_volume_claims.get
    return [
        BoundClaim(pod, cached, volume)
        for pod in pods
        for volume in volumes
        if (cached := get(ctx.namespace, pvc_name(volume.name, pod))) is not None
        and not cached.metadata.deletion_timestamp
        and cached.decode_as(Claim).is_bound
    ]


def _moves(ctx: ClusterContext, spec: Component, bound: Iterable[BoundClaim]) -> list[Move]:
    """The steps of the claims that are not as the spec wants them."""
    moves = []
    for each in bound:
        if not each.is_settled:
            claim = _read(ctx, each.cached)
            wanted = _wanted(ctx, spec, each.volume, claim)
            moves.append(Move(each.pod, each.cached, claim, wanted, next_step(claim, wanted, ctx.deps.clock.wall)))
    return [move for move in moves if not isinstance(move.step, Settled)]


def _wanted(ctx: ClusterContext, spec: Component, volume: DesiredVolume, claim: VolumeClaim) -> Wanted:
    """The wanted state of a claim, with the way to another storage class, if that is wanted."""
    field = _field(spec, volume.name)
    goal = Wanted(_size_field(spec, volume.name), volume.size, f"{field}.storageClassName", volume.storage_class)
    if volume.storage_class in ("", claim.storage_class):
        return goal
    if volume.attributes_class:
        decides = f"{field}.volumeAttributesClassName decides about its attributes"
        return replace(goal, obstacle=f": {decides}; restore {claim.storage_class}")
    way = in_place(ctx, claim.storage_class, volume.storage_class)
    if ctx.settings.modifies_volumes:
        return replace(goal, attributes_class=way.name, obstacle=way.obstacle)
    if way.obstacle:
        return goal
    why = f"; restore {claim.storage_class}, or switch on the feature VolumeModifying, which changes volumes in place"
    return replace(goal, obstacle=why)


def _in_turn(ctx: ClusterContext, spec: Component, body: Json, moves: list[Move]) -> list[Move]:
    """The moves, of which only the volumes of one pod begin to change the storage class (VMOD-8).

    A pod is next once all lower ones have their class. While the component changes otherwise, or is about to, none
    begins but a pod that waits for it before its restart (VMOD-9).
    """
    changing = _changing(moves)
    if not changing:
        return moves
    turn = ctx.volume_turns.get(spec.name)
    next_pod = _has_begun(changing) or turn or changing[0].pod
    # slow volumes may be the cause if pods are not Ready
    is_idle = volume_replacement.is_settled(ctx, spec.name, body) and not _will_roll(ctx, spec, body)
    return [_held(move, next_pod, is_idle=is_idle or next_pod == turn) for move in moves]


def _will_roll(ctx: ClusterContext, spec: Component, body: Json) -> bool:
    """True if the component has to restart its pods and waits for others; a version that it refuses does not count."""
    has_other_image = image_of(body, spec.name) != spec.image and spec.name not in ctx.refused_upgrades
    return spec.name in ctx.rolls_to_come or has_other_image


def _changing(moves: Iterable[Move]) -> list[Move]:
    """The moves to another storage class."""
    return [move for move in moves if changes_class(move.claim, move.wanted)]


def _has_begun(changing: Sequence[Move]) -> str:
    """The pod whose volumes are changing already; empty if none has begun."""
    return next((move.pod for move in changing if move.claim.has_left_class), "")


def before_restart(ctx: ClusterContext, component: str, pod: Object) -> Waiting | None:
    """The wait for the new storage class of a pod's volumes before the pod restarts, which `act` changes (VMOD-9).

    None if there is nothing to wait for: volumes that may change only hours later, a change that is refused, or another
    pod whose volumes have not finished. After ten minutes the pod restarts: volumes serve while they change, and the
    next pod would wait as long.
    """
    watches, uid, spec = ctx.memory.stopwatches, pod.metadata.uid, find(ctx.tc, component)
    live = ctx.stateful_set(component)
    if not ctx.settings.modifies_volumes or spec is None or live is None:
        return None
    moves = _moves(ctx, spec, _bound(ctx, spec, live, ctx.tree(live)))
    changing = _changing(moves)
    own = [move for move in changing if move.pod == pod.metadata.name and not _is_pausing(move)]
    if not own or any(isinstance(move.step, Refuse) for move in moves):
        watches.forget(_BEFORE_RESTART, uid)
        return None
    if _has_begun(changing) not in ("", pod.metadata.name):
        return None
    if watches.look(_BEFORE_RESTART, uid, ctx.deps.clock).seconds >= _LIMIT:
        return None
    ctx.volume_turns[component] = pod.metadata.name
    new = own[0].wanted.storage_class
    step = f"waiting at most {_LIMIT:.0f} s until the volumes of pod {pod.metadata.name} have storage class {new}"
    way_out = f"`kubectl describe pvc {own[0].claim.name}` shows what the storage driver does"
    return Waiting(MODIFYING, f"{step}, before restarting it", _LOOK_AGAIN, step=step, way_out=way_out)


def _is_pausing(move: Move) -> bool:
    """True if a volume changed so recently that its next change has to wait."""
    return isinstance(move.step, Wait) and bool(move.step.seconds)


def _held(move: Move, next_pod: str, *, is_idle: bool) -> Move:
    """The move, waiting if it would begin to change the storage class out of turn."""
    if not (isinstance(move.step, Begin) and move.step.storage_class):
        return move
    name, new = move.claim.name, move.step.storage_class
    if move.pod != next_pod:
        what = f"waiting to change PersistentVolumeClaim {name} to storage class {new} until pod {next_pod} has it"
        return replace(move, step=WaitForClass(what))
    if is_idle:
        return move
    what = f"waiting until the component is idle before changing PersistentVolumeClaim {name} to storage class {new}"
    return replace(move, step=WaitForClass(what, _LOOK_AGAIN))


async def _provide_classes(ctx: ClusterContext, moves: Sequence[Move]) -> Refused | None:
    """Create the VolumeAttributesClasses that claims will request; the refusal if one cannot be used."""
    requesting = [move for move in moves if isinstance(move.step, Begin | Ask) and move.step.attributes_class]
    for old, new in dict.fromkeys((move.claim.storage_class, move.wanted.storage_class) for move in requesting):
        field = next(move.wanted.class_field for move in requesting if move.wanted.storage_class == new)
        desired = in_place(ctx, old, new).attributes_class
        if desired and (refused := await provide(ctx, desired, field)):
            return refused
    return None


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
    attributes, under_way = claim.spec.volume_attributes_class_name, claim.status.modify_volume_status
    is_under_way = under_way.status == PENDING or under_way.target_volume_attributes_class_name == attributes
    read = VolumeClaim(
        name=cached.metadata.name,
        requested=claim.spec.resources.requests.storage,
        capacity=claim.status.capacity.storage or claim.spec.resources.requests.storage,
        storage_class=storage_class_of(cached),
        can_grow=_can_grow(ctx, claim.spec.storage_class_name),
        refused_size=claim.refused_size,
        spec_revision=annotations.get(labels.SPEC_REVISION, ""),
        spec_size=annotations.get(labels.SPEC_STORAGE_SIZE, ""),
        status_revision=annotations.get(labels.STATUS_REVISION, ""),
        status_size=annotations.get(labels.STATUS_STORAGE_SIZE, ""),
        changed_at=annotations.get(labels.STATUS_LAST_TRANSITION, ""),
        spec_class=annotations.get(labels.SPEC_STORAGE_CLASS, ""),
        attributes_class=attributes,
        current_attributes_class=claim.status.current_volume_attributes_class_name,
        modification=under_way.status if is_under_way else "",
        trouble=claim.trouble_of_modification,
    )
    return replace(read, storage_class=read.spec_class) if _has_new_class(ctx, read) else read


def _has_new_class(ctx: ClusterContext, claim: VolumeClaim) -> bool:
    """True if the volume has got the storage class whose change has begun, which the claim has yet to record."""
    if not claim.has_left_class:
        return False
    name = in_place(ctx, claim.storage_class, claim.spec_class).name
    return name is not None and (name == "" or name == claim.attributes_class == claim.current_attributes_class)


def _can_grow(ctx: ClusterContext, name: str) -> bool | None:
    """The class's allowVolumeExpansion; None if the operator may not read classes: then the API server decides."""
    if ctx.listers.storage_classes is None:
        return None
    cached = storage_class(ctx, name)
    return cached is not None and bool(cached.allow_volume_expansion)


async def _carry_out(ctx: ClusterContext, move: Move) -> None:
    claim, now = move.claim, stamp(ctx.deps.clock.wall())
    asked: Json = {"resources": {"requests": {"storage": move.wanted.size}}}
    match move.step:
        case Begin(revision, new_class, attributes_class):
            noted = {
                labels.SPEC_REVISION: str(revision),
                labels.SPEC_STORAGE_SIZE: move.wanted.size,
                labels.SPEC_STORAGE_CLASS: new_class or claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            if claim.storage_class != storage_class_of(move.cached):
                # the last change was not recorded as done: its size was corrected before
                noted[labels.STATUS_STORAGE_CLASS] = claim.storage_class
            # in one write with the request: a crash leaves no record of a class that was not requested
            former = claim.attributes_class if attributes_class is None else ""
            fields = {"metadata": {"annotations": noted}, "spec": asked | _class(attributes_class or "")}
            await _patch(move.cached, fields, without=former)
        case Ask(attributes_class):
            await _patch(move.cached, {"spec": asked | _class(attributes_class)})
        case Finish():
            arrived = {
                labels.STATUS_REVISION: claim.spec_revision,
                labels.STATUS_STORAGE_SIZE: claim.spec_size,
                labels.STATUS_STORAGE_CLASS: claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            await _patch(move.cached, {"metadata": {"annotations": arrived}})


def _class(attributes_class: str) -> Json:
    """The field that requests a VolumeAttributesClass; no field if it is empty."""
    return {"volumeAttributesClassName": attributes_class} if attributes_class else {}


async def _patch(cached: Object, fields: Json, without: str = "") -> Object:
    """Write fields of a claim; `without` is the VolumeAttributesClass that it shall no longer request."""
    name = {"name": cached.metadata.name, "namespace": cached.metadata.namespace}
    metadata = fields.get("metadata", {}) | name
    applied = {"spec": _class(without)} if without else None
    return await Apply(PERSISTENT_VOLUME_CLAIMS, fields | {"metadata": metadata}, cached, applied)


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
        if isinstance(move.step, Wait) and not isinstance(move.step, WaitForClass):
            trouble = "" if move.step.seconds else trouble_of_growth(ctx, move.cached)
            what = f"{move.step.what} ({trouble})" if trouble else move.step.what
            return Waiting(GROWING, what, move.step.seconds or again)
    if changing := [move for move in moves if not isinstance(move.step, Wait)]:
        what = f"changing {', '.join(move.claim.name for move in changing)}"
        if any(move.wanted.storage_class not in ("", storage_class_of(move.cached)) for move in changing):
            return Waiting(MODIFYING, what, again)
        return Waiting(GROWING, what, again)
    first = next(move.step for move in moves if isinstance(move.step, WaitForClass))
    return Waiting(MODIFYING, first.what, first.seconds or again, serves=True)


@dataclass(frozen=True, slots=True)
class ClaimClass:
    """A cached bound claim, and the class that the spec's `field` names; an empty class leaves the choice open.

    `written` is True if this reconcile has written to the claim, so that the cached claim is outdated.
    """

    cached: Object
    wanted: str
    field: str
    written: bool = False


def _classes(spec: Component, bound: Iterable[BoundClaim], moves: Iterable[Move]) -> Iterator[ClaimClass]:
    """The volume attributes classes of the claims, if the spec names any."""
    written = {move.claim.name for move in moves if isinstance(move.step, Begin | Ask | Finish)}
    for each in bound:
        if wanted := each.volume.attributes_class:
            field = f"{_field(spec, each.volume.name)}.volumeAttributesClassName"
            yield ClaimClass(each.cached, wanted, field, each.cached.metadata.name in written)


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
    if under_way.status == INFEASIBLE:
        return Refused(REFUSED, f"{each.field}: the storage driver refuses {what}; name another class")
    why = "; does the class exist, and is it of this driver?" if under_way.status == PENDING else ""
    return Waiting(MODIFYING, f"waiting for {what}{why}", _LOOK_AGAIN, serves=True)


async def _request_class(each: ClaimClass) -> Outcome:
    answer = await _patch(each.cached, {"spec": _class(each.wanted)})
    if answer.decode_as(Claim).spec.volume_attributes_class_name == each.wanted:
        return Done()
    name = each.cached.metadata.name
    what = f"PersistentVolumeClaim {name} does not keep a volume attributes class in this Kubernetes cluster"
    return Refused(REFUSED, f"{each.field}: {what}; remove it, or have VolumeAttributesClass switched on")


def storage_class(ctx: ClusterContext, name: str) -> StorageClass | None:
    """A cached storage class; None if it does not exist or if the operator may not read storage classes."""
    lister = ctx.listers.storage_classes
    cached = lister.get("", name) if lister else None
    return cached.decode_as(StorageClass) if cached else None


@dataclass(frozen=True, slots=True)
class InPlace:
    """The way from one storage class to another: a VolumeAttributesClass, if one is needed, or an `obstacle`."""

    attributes_class: Json | None = None
    obstacle: str = ""

    @property
    def name(self) -> str | None:
        """The name of the VolumeAttributesClass; empty if none is needed, None if there is an obstacle."""
        if self.obstacle:
            return None
        name: str = self.attributes_class["metadata"]["name"] if self.attributes_class else ""
        return name


def in_place(ctx: ClusterContext, old: str, new: str) -> InPlace:
    """The way from one storage class to another, by their names; the obstacle continues a sentence."""
    if ctx.listers.storage_classes is None:
        return InPlace(obstacle=f": the operator may not read storage classes; restore {old}, or allow it")
    before, after = storage_class(ctx, old), storage_class(ctx, new)
    if before is None or after is None:
        missing = new if after is None else old
        return InPlace(obstacle=f": storage class {missing} does not exist; create it, or restore {old}")
    if why := obstacle(before, after, new):
        return InPlace(obstacle=f": {why}, or restore {old}")
    return InPlace(attributes_class(new, after))


async def provide(ctx: ClusterContext, desired: Json, field: str) -> Refused | None:
    """Create a VolumeAttributesClass unless it exists; the refusal if it is another client's, or cannot exist.

    Raises ApiError, TransportError.
    """
    name = desired["metadata"]["name"]
    try:
        live = ctx.deps.client.find(VOLUME_ATTRIBUTES_CLASSES, name)
        live = live or await Create(VOLUME_ATTRIBUTES_CLASSES, desired)
    except AlreadyExists:
        live = ctx.deps.client.get(VOLUME_ATTRIBUTES_CLASSES, name)
    except NotFound:
        what = "this Kubernetes has no VolumeAttributesClass (storage.k8s.io/v1, since 1.34)"
        return Refused(
            REFUSED, f"{field}: {what}, which changes volumes in place; restore the former class", _LOOK_AGAIN
        )
    if is_ours(live.decode(), desired):
        return None
    what = f"VolumeAttributesClass {name} exists and is not the operator's; delete it, or restore the former class"
    return Refused(REFUSED, f"{field}: {what}", _LOOK_AGAIN)
