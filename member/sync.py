"""The frame of every component that runs in a StatefulSet (lifecycle.md 6).

suspend? → gate → Services → StatefulSet: configuration, size, roll, volumes → failover → does it serve?

Each step is a module of its own and the same for all components; what differs between them is in the verbs of `Member`.
Size, pod template and update strategy are decided one after another on what this round saw, and written as one patch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apis.accessor import Component, find
from apis.ordinals import desired_ordinals, desired_replicas
from apis.tidbcluster import TidbCluster
from kube.apply import require_ours
from kube.deletion import Destroyer
from kube.errors import NotFound
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS, Resource
from member.claim_templates import unwanted_mounts, with_sizes_of
from member.configmap import ConfigMapChoice, Content, choose_config_map, config_map, in_use_config_map_name
from member.naming import member_name, pod_name
from member.outcome import Done, Outcome, Refused, Waiting
from member.pods import Pod, pods_of
from member.polling import next_look
from member.records import (
    applied,
    compare_stateful_set,
    fixed_field_change,
    missing_volumes,
    stamped,
    with_fixed_fields,
    with_running_template,
)
from member.recreation import RECREATING, as_before, left_behind
from member.rolling import Roll, Rolling, next_roll
from member.round import Round
from member.scaling import Scaling, next_size, warn_of_slots
from member.statefulset import with_size, with_strategy, with_template_of
from member.status import UPGRADE, set_phase
from member.suspend import Later, suspension
from member.writing import apply, apply_service

NOT_YET_SUPPORTED = "NotYetSupported"

_CANT_UPDATE = {"pd": "FailedUpdatePDSTS", "tikv": "FailedUpdateTiKVSTS", "tidb": "FailedUpdateTiDBSTS"}
"""v1.6's event reasons."""


@dataclass(frozen=True, slots=True)
class Member:
    """A component as verbs.

    `gate` says what must be there first; `services`, `content` and `stateful_set` what is desired; `scaling` how it
    grows and shrinks, `rolling` how its pods are restarted, `failover` how lost ones are replaced; `serving` what it
    still lacks when all its pods are Ready.
    """

    name: str
    gate: Callable[[Round], Waiting | None]
    services: Callable[[TidbCluster], Sequence[Json]]
    content: Callable[[TidbCluster], Content]
    stateful_set: Callable[[TidbCluster, str], Json]
    scaling: Scaling
    rolling: Rolling
    failover: Callable[[Round], Outcome]
    serving: Callable[[Round], Outcome]


def act(round_: Round, member: Member) -> Outcome:
    """Bring one component a step closer to its spec.

    Raises OwnerGone, ForeignOwner, ApiError, TransportError, DataPlaneError.
    """
    spec = find(round_.tc, member.name)
    if spec is None:
        return Done("not part of this cluster")
    if round_.tc.spec.paused:
        return Refused("Paused", "spec.paused is true: nothing is written until it is false")
    suspended = suspension(round_, member.name)
    if isinstance(suspended, Later):
        return suspended.beside(_keep(round_, member, spec))
    return suspended or _keep(round_, member, spec)


def _keep(round_: Round, member: Member, spec: Component) -> Outcome:
    """Everything but suspending it."""
    if waiting := _gate(round_, member):
        return waiting
    for service in member.services(round_.tc):
        apply_service(round_, service)
    live = round_.stateful_set(member.name) or _unseen(round_, STATEFUL_SETS, member_name(round_.tc, member.name))
    if live is None:
        return _create(round_, member, spec)
    if live.metadata.deletion_timestamp:
        what = f"StatefulSet {live.metadata.name} is being deleted; it is made again when it is gone"
        return Waiting(RECREATING, what, next_look(round_, member.name))
    return _first_not_done(
        _update(round_, member, spec, live), lambda: member.failover(round_), lambda: _serving(round_, member)
    )


def _gate(round_: Round, member: Member) -> Waiting | None:
    """What must be there first; nothing for pods that run already and only lack their StatefulSet."""
    waiting = member.gate(round_)
    if waiting is None or round_.stateful_set(member.name) or not pods_of(round_, member.name):
        return waiting
    return waiting if _unseen(round_, STATEFUL_SETS, member_name(round_.tc, member.name)) else None


def _first_not_done(outcome: Outcome, failover: Callable[[], Outcome], serving: Callable[[], Outcome]) -> Outcome:
    """The most telling of three: what needs the user, the update, the failover, the service.

    A failover is looked for in every round, whatever is said.
    """
    failed_over = failover()
    if isinstance(failed_over, Refused) or (isinstance(outcome, Done) and not isinstance(failed_over, Done)):
        return failed_over
    return outcome if not isinstance(outcome, Done) else serving()


def _unseen(round_: Round, resource: Resource, name: str) -> Object | None:
    """What the cache lacks, read live: deciding as if it were absent would overwrite it (F1, F6)."""
    try:
        return round_.doors.client.get(resource, name, round_.namespace)
    except NotFound:
        return None


def _create(round_: Round, member: Member, spec: Component) -> Outcome:
    left = left_behind(round_, member.name)
    choice = _choose(round_, member, spec, left.running)
    _write_config_map(round_, member, choice)
    desired = as_before(left, member.stateful_set(round_.tc, choice.name))
    warn_of_slots(round_, member.name, desired, None)
    apply(round_, STATEFUL_SETS, desired, None)
    return Waiting("Creating", f"StatefulSet {desired['metadata']['name']} was created; waiting for its pods")


def _update(round_: Round, member: Member, spec: Component, live: Object) -> Outcome:
    body = live.decode()
    choice = _choose(round_, member, spec, body)
    wanted = with_running_template(body, member.stateful_set(round_.tc, choice.name))
    require_ours(STATEFUL_SETS, wanted, live)
    if refused := _other_mounts(spec, body, wanted):
        return refused
    _write_config_map(round_, member, choice)
    # as far as no running pod notices
    desired = with_fixed_fields(body, wanted)
    changed = _changed(spec, body, desired, choice)
    warn_of_slots(round_, member.name, wanted, body)
    size = next_size(round_, member.name, member.scaling, body, desired)
    desired = with_size(desired, size.replicas)
    scaling = size.outcome is not None
    roll = next_roll(round_, member.name, member.rolling, body, desired, changed=changed, scaling=scaling)
    if not roll.takes_template:
        desired = with_template_of(body, desired)
    elif changed:
        # others that are reconciled after this one in the same round see it coming (7.2)
        set_phase(round_, member.name, UPGRADE)
    desired = with_strategy(desired, roll.strategy)
    if not compare_stateful_set(body, desired).nothing:
        apply(round_, STATEFUL_SETS, stamped(desired, body), live, applied_before=applied(body))
    elif roll.delete:
        _delete(round_, roll)
    return size.outcome or roll.outcome or _fixed(body, wanted) or Done()


def _other_mounts(spec: Component, body: Json, wanted: Json) -> Refused | None:
    """The refusal of pods that could not be made, or would lose a volume, as claim templates stay (4.5, F23, R26)."""
    reason = _CANT_UPDATE[spec.name]
    if missing := missing_volumes(body, wanted):
        what = f"{spec.field} mounts {', '.join(missing)}, which is neither among its volumes nor its storageVolumes"
        return Refused(reason, f"{what} at its creation; this version can't add volumes to running pods")
    if unwanted := unwanted_mounts(body, wanted):
        what = f"{spec.field}.storageVolumes lacks {', '.join(unwanted)}, which the pods mount"
        return Refused(reason, f"{what}; this version can't take volumes from running pods: put it back")
    return None


def _changed(spec: Component, body: Json, desired: Json, choice: ConfigMapChoice) -> str:
    """What the user changed that shows in the pods; empty when nothing."""
    difference = compare_stateful_set(body, desired)
    change = difference.template_difference or difference.pod_metadata_change
    if change is None:
        return ""
    if choice.name == in_use_config_map_name(spec.tc, spec.name, body):
        return str(change)
    return f"{spec.field if choice.same_config else spec.config_field}: {choice.because}"


def _delete(round_: Round, roll: Roll) -> None:
    """Delete the pod of a roll that is not Ready, if a live look still says so, or was prepared (F11, I10)."""
    destroyer = Destroyer(round_.doors.client)
    evidence = destroyer.observe(PODS, roll.delete, round_.namespace)
    if evidence is None or evidence.object.metadata.deletion_timestamp:
        return
    if roll.prepared or not evidence.object.decode_as(Pod).is_ready:
        destroyer.delete(evidence)


def _fixed(body: Json, wanted: Json) -> Refused | None:
    """The refusal of what can't be changed in a StatefulSet; larger volumes are `member.volume_changes`'."""
    if change := fixed_field_change(body, with_sizes_of(body, wanted)):
        return Refused(NOT_YET_SUPPORTED, f"{change}; this version can't replace volumes or the StatefulSet")
    return None


def _choose(round_: Round, member: Member, spec: Component, body: Json | None) -> ConfigMapChoice:
    in_use = in_use_config_map_name(round_.tc, member.name, body)
    existing = _config_map(round_, in_use) if in_use else None
    return choose_config_map(
        member_name(round_.tc, member.name),
        member.content(round_.tc),
        spec.config_update_strategy,
        in_use,
        existing.decode() if existing else None,
    )


def _config_map(round_: Round, name: str) -> Object | None:
    return round_.listers.config_maps.get(round_.namespace, name) or _unseen(round_, CONFIG_MAPS, name)


def _write_config_map(round_: Round, member: Member, choice: ConfigMapChoice) -> None:
    desired = config_map(round_.tc, member.name, choice)
    cached = round_.listers.config_maps.get(round_.namespace, choice.name)
    data = cached.decode().get("data") or {} if cached else {}
    if data == choice.data:
        # what made the text is noted together with the next change of it, so that taking over writes nothing
        del desired["metadata"]["annotations"]
    apply(round_, CONFIG_MAPS, desired, cached, applied_before={"data": data})


def _serving(round_: Round, member: Member) -> Outcome:
    """What the component still lacks to serve as wanted."""
    wanted = desired_replicas(round_.tc, member.name)
    pods = {pod.metadata.name: pod.decode_as(Pod) for pod in pods_of(round_, member.name)}
    ready = sum(pod.is_ready for pod in pods.values())
    if ready < wanted:
        names = [pod_name(round_.tc, member.name, ordinal) for ordinal in desired_ordinals(round_.tc, member.name)]
        missing = "; ".join(_with_trouble(name, pods.get(name)) for name in names if not _is_ready(pods.get(name)))
        return Waiting("PodsNotReady", f"{ready} of {wanted} pods are Ready; waiting for {missing}")
    observed = round_.observations.get(member.name, Done())
    return observed if not isinstance(observed, Done) else member.serving(round_)


def _is_ready(pod: Pod | None) -> bool:
    return pod is not None and pod.is_ready


def _with_trouble(name: str, pod: Pod | None) -> str:
    trouble = pod.trouble if pod else ""
    return f"{name} ({trouble})" if trouble else name
