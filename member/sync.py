"""The frame of every component that runs in a StatefulSet: gate, Services, configuration, pods (lifecycle.md 6).

A change that would restart or remove pods is not made by this version: it is refused, and the refusal names the field.
Everything else - creation, scale-out, Services, configuration in place, ownership - is brought to what is desired.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from apis.accessor import Component, find
from apis.ordinals import desired_ordinals, desired_replicas
from apis.tidbcluster import TidbCluster
from kube.apply import require_ours
from kube.errors import NotFound
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS, STATEFUL_SETS, Resource
from member.configmap import ConfigMapChoice, Content, choose_config_map, config_map, in_use_config_map_name
from member.naming import member_name, pod_name
from member.outcome import Done, Outcome, Refused, Waiting
from member.pods import Pod, pods_of
from member.records import (
    applied,
    compare_stateful_set,
    fixed_field_change,
    stamped,
    with_fixed_fields,
    with_running_template,
)
from member.round import Round
from member.scale_out import ScaleOut, next_replicas
from member.statefulset import with_replicas, with_strategy_of, with_template_of
from member.status import is_rolling
from member.writing import apply, apply_service

NOT_YET_SUPPORTED = "NotYetSupported"


@dataclass(frozen=True, slots=True)
class Member:
    """A component as verbs.

    `gate` says what must be there first; `services`, `content` and `stateful_set` what is desired; `serving` what it
    still lacks when all its pods are Ready; `scale_out` how it grows.
    """

    name: str
    gate: Callable[[Round], Waiting | None]
    services: Callable[[TidbCluster], Sequence[Json]]
    content: Callable[[TidbCluster], Content]
    stateful_set: Callable[[TidbCluster, str], Json]
    serving: Callable[[Round], Outcome]
    scale_out: ScaleOut


def act(round_: Round, member: Member) -> Outcome:
    """Bring one component a step closer to its spec. Raises OwnerGone, ForeignOwner, ApiError, TransportError."""
    spec = find(round_.tc, member.name)
    if spec is None:
        return Done("not part of this cluster")
    if refused := _refusal(round_, spec):
        return refused
    if waiting := member.gate(round_):
        return waiting
    for service in member.services(round_.tc):
        apply_service(round_, service)
    live = round_.stateful_set(member.name) or _unseen(round_, STATEFUL_SETS, member_name(round_.tc, member.name))
    if live is None:
        return _create(round_, member, spec)
    outcome = _update(round_, member, spec, live)
    return outcome if not isinstance(outcome, Done) else _serving(round_, member)


def _refusal(round_: Round, spec: Component) -> Refused | None:
    if round_.tc.spec.paused:
        return Refused("Paused", "spec.paused is true: nothing is written until it is false")
    if spec.suspended:
        return Refused(NOT_YET_SUPPORTED, f"{spec.field}.suspendAction: this version can't suspend a component yet")
    return None


def _unseen(round_: Round, resource: Resource, name: str) -> Object | None:
    """What the cache lacks, read live: deciding as if it were absent would overwrite it (F1, F6)."""
    try:
        return round_.doors.client.get(resource, name, round_.namespace)
    except NotFound:
        return None


def _create(round_: Round, member: Member, spec: Component) -> Outcome:
    choice = _choose(round_, member, spec, None)
    _write_config_map(round_, member, choice)
    desired = stamped(member.stateful_set(round_.tc, choice.name))
    apply(round_, STATEFUL_SETS, desired, None)
    return Waiting("Creating", f"StatefulSet {desired['metadata']['name']} was created; waiting for its pods")


def _update(round_: Round, member: Member, spec: Component, live: Object) -> Outcome:
    body = live.decode()
    choice = _choose(round_, member, spec, body)
    wanted = with_running_template(body, member.stateful_set(round_.tc, choice.name))
    require_ours(STATEFUL_SETS, wanted, live)
    restarting = _refused_restart(spec, body, wanted, choice)
    if not restarting:
        _write_config_map(round_, member, choice)
    # as far as no running pod notices
    desired = with_fixed_fields(body, with_template_of(body, wanted))
    replicas, waiting = next_replicas(round_, member.name, member.scale_out, body, desired)
    desired = _with_replicas(body, desired, replicas)
    if not compare_stateful_set(body, desired).nothing:
        apply(round_, STATEFUL_SETS, stamped(desired, body), live, applied_before=applied(body))
    if refused := restarting or _refused_change(spec, body, wanted):
        return replace(refused, retry_after=waiting.retry_after) if waiting else refused
    return waiting or Done()


def _refused_restart(spec: Component, body: Json, wanted: Json, choice: ConfigMapChoice) -> Refused | None:
    """The refusal of a change that would restart pods; it names what the user changed."""
    difference = compare_stateful_set(body, wanted)
    change = difference.template_difference or difference.pod_metadata_change
    if change is None:
        return None
    what = str(change)
    if choice.name != in_use_config_map_name(spec.tc, spec.name, body):
        what = f"{spec.field}: {choice.because}" if choice.same_config else f"{spec.config_field}: {choice.because}"
    return Refused(NOT_YET_SUPPORTED, f"{what}; this version can't restart pods, so they stay as they are")


def _refused_change(spec: Component, body: Json, wanted: Json) -> Refused | None:
    """The refusal of a change that would remove pods, change volumes, or go on with a roll."""
    there, replicas = body["spec"]["replicas"], wanted["spec"]["replicas"]
    if replicas < there:
        return Refused(
            NOT_YET_SUPPORTED, f"{spec.field}.replicas: this version can't scale in, from {there} to {replicas}"
        )
    if change := fixed_field_change(body, wanted):
        return Refused(NOT_YET_SUPPORTED, f"{change}; this version can't replace volumes or the StatefulSet")
    if is_rolling(body):
        return Refused(NOT_YET_SUPPORTED, "a rolling update is under way; this version can't go on with it")
    return None


def _with_replicas(body: Json, desired: Json, replicas: int) -> Json:
    sized = with_replicas(desired, replicas)
    return with_strategy_of(body, sized) if is_rolling(body) else sized


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
