"""Other volumes, for the pods that run and for those to come (lifecycle.md 10.2, F47, F48).

Claims grow whatever the component does: a full disk can't wait for a roll or for leaders to move. The StatefulSet,
whose claim templates nobody can change, is made again when the component is at rest. What can't grow into what is
wanted is refused as a whole, before anything is written, or replaced where the user lets it be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apis import predicates
from apis.accessor import Component, find
from kube.errors import ApiError
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member import labels, volume_replacement
from member.claim_templates import names, sizes_differ
from member.claims import Claim
from member.naming import pod_name, pvc_name
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import look_again
from member.recreation import release
from member.round import Round
from member.status import stamp
from member.volume_growth import Ask, Begin, Finish, Refuse, Settled, Step, VolumeClaim, Wait, Wanted, next_step
from member.volume_status import desired_templates, desired_volumes
from member.writing import annotate_owner

ORDER = ("pd", "tidb", "tikv")

GROWING = "GrowingVolumes"


@dataclass(frozen=True, slots=True)
class Move:
    """A claim of a pod, what is wanted of it, and the next step to that."""

    pod: str
    cached: Object
    claim: VolumeClaim
    wanted: Wanted
    step: Step


def act(round_: Round) -> Outcome:
    """Bring the volumes of all components a step closer to their spec; one that fails does not stop the others.

    Raises OwnerGone, ApiError, TransportError.
    """
    if round_.tc.spec.paused:
        return Done()
    outcomes: list[Outcome] = []
    errors: list[ApiError] = []
    for name in ORDER:
        spec = find(round_.tc, name)
        if spec is None:
            continue
        try:
            outcomes.append(_change(round_, spec))
        except ApiError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return _most_telling(outcomes)


def _most_telling(outcomes: Sequence[Outcome]) -> Outcome:
    for kind in (Refused, Waiting):
        if found := next((outcome for outcome in outcomes if isinstance(outcome, kind)), None):
            return found
    return Done()


def _change(round_: Round, spec: Component) -> Outcome:
    live = round_.stateful_set(spec.name)
    if live is None or live.metadata.deletion_timestamp or predicates.in_phase(round_.tc, spec.name, "Suspend"):
        return Done()
    body, wanted = live.decode(), {"spec": {"volumeClaimTemplates": desired_templates(round_.tc, spec.name)}}
    if sorted(names(body)) != sorted(names(wanted)):
        return Done("other volumes than before are the component's own refusal")
    seen = list(_moves(round_, spec, body))
    moves = [move for move in seen if not isinstance(move.step, Settled)]
    stale = {move.pod: move.step.why for move in moves if isinstance(move.step, Refuse)}
    if stale and (refused := volume_replacement.refusal(round_, spec, stale)):
        return refused
    for move in moves:
        _carry_out(round_, move)
    if sizes_differ(body, wanted):
        return _renew(round_, spec.name, live, body)
    annotate_owner(round_, {labels.config_map_before_delete(spec.name): None})
    if stale:
        return volume_replacement.replace(round_, spec, body, stale)
    all_seen = len(seen) == body["spec"]["replicas"] * len(wanted["spec"]["volumeClaimTemplates"])
    ended = volume_replacement.end(round_, spec.name, all_seen=all_seen)
    return _growing(round_, moves) if isinstance(ended, Done) else ended


def _moves(round_: Round, spec: Component, body: Json) -> Iterator[Move]:
    """Every claim of the StatefulSet that the cache shows bound: another one grows when it is."""
    now, wanted = round_.doors.clock.wall(), desired_volumes(round_.tc, spec.name)
    for ordinal in range(body["spec"]["replicas"]):
        pod = pod_name(round_.tc, spec.name, ordinal)
        for volume in wanted:
            cached = round_.listers.persistent_volume_claims.get(round_.namespace, pvc_name(volume.name, pod))
            if cached is None or cached.metadata.deletion_timestamp or not cached.decode_as(Claim).is_bound:
                continue
            claim = _read(round_, cached)
            goal = Wanted(_field(spec, volume.name), volume.size, volume.storage_class)
            yield Move(pod, cached, claim, goal, next_step(claim, goal, now))


def _field(spec: Component, volume: str) -> str:
    if volume == spec.name:
        return f"{spec.field}.requests.storage"
    return f"{spec.field}.storageVolumes[{volume.removeprefix(f'{spec.name}-')}].storageSize"


def _read(round_: Round, cached: Object) -> VolumeClaim:
    claim, told = cached.decode_as(Claim), cached.metadata.annotations
    # where a cloud changed the class under the claim, v1.6 has noted it
    storage_class = told.get(labels.STATUS_STORAGE_CLASS) or claim.spec.storage_class_name
    return VolumeClaim(
        name=cached.metadata.name,
        requested=claim.spec.resources.requests.storage,
        capacity=claim.status.capacity.storage or claim.spec.resources.requests.storage,
        storage_class=storage_class,
        can_grow=_can_grow(round_, claim.spec.storage_class_name),
        spec_revision=told.get(labels.SPEC_REVISION, ""),
        spec_size=told.get(labels.SPEC_STORAGE_SIZE, ""),
        status_revision=told.get(labels.STATUS_REVISION, ""),
        status_size=told.get(labels.STATUS_STORAGE_SIZE, ""),
        changed_at=told.get(labels.STATUS_LAST_TRANSITION, ""),
    )


def _can_grow(round_: Round, name: str) -> bool | None:
    """What the class says; None when the operator may not read classes: then the API server has the last word."""
    if round_.listers.storage_classes is None:
        return None
    found = round_.listers.storage_classes.get("", name)
    return found is not None and bool(found.decode().get("allowVolumeExpansion"))


def _carry_out(round_: Round, move: Move) -> None:
    claim, wanted, now = move.claim, move.wanted, stamp(round_.doors.clock.wall())
    asked: Json = {"resources": {"requests": {"storage": wanted.size}}}
    match move.step:
        case Begin(revision):
            noted = {
                labels.SPEC_REVISION: str(revision),
                labels.SPEC_STORAGE_SIZE: wanted.size,
                labels.SPEC_STORAGE_CLASS: claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            _patch(round_, move.cached, {"metadata": {"annotations": noted}, "spec": asked})
        case Ask():
            _patch(round_, move.cached, {"spec": asked})
        case Finish():
            arrived = {
                labels.STATUS_REVISION: claim.spec_revision,
                labels.STATUS_STORAGE_SIZE: claim.spec_size,
                labels.STATUS_STORAGE_CLASS: claim.storage_class,
                labels.STATUS_LAST_TRANSITION: now,
            }
            _patch(round_, move.cached, {"metadata": {"annotations": arrived}})


def _patch(round_: Round, cached: Object, fields: Json) -> None:
    name = {"name": cached.metadata.name, "namespace": round_.namespace}
    metadata = fields.get("metadata", {}) | name
    round_.doors.applier.apply(PERSISTENT_VOLUME_CLAIMS, fields | {"metadata": metadata}, cached)


def _renew(round_: Round, component: str, live: Object, body: Json) -> Waiting:
    """Make the StatefulSet again, if nothing else is going on with its pods."""
    if not volume_replacement.at_rest(round_, component, body):
        return Waiting(
            GROWING, f"{component}'s StatefulSet is made again for other volumes when {component} is at rest"
        )
    return release(round_, component, live)


def _growing(round_: Round, moves: Sequence[Move]) -> Outcome:
    if not moves:
        return Done()
    wait = next((move.step for move in moves if isinstance(move.step, Wait)), None)
    what = wait.what if wait else f"{', '.join(move.claim.name for move in moves)} change"
    again = wait.seconds if wait and wait.seconds else look_again(round_, moves[0].claim.changed_at)
    return Waiting(GROWING, what, again)
