"""The Services and StatefulSets of objects of simple kinds (other-resources.md 1)."""

from typing import Any, Protocol

from controllers.database_actions import executor_of
from controllers.owned_deletion import delete_if
from controllers.pod_troubles import trouble_of_pod
from controllers.simple_kind import Reconcile
from kube.events import NORMAL
from kube.objects import Json, Object, is_observed
from kube.resources import OTHER_STATEFUL_SETS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, STATEFUL_SETS
from member.apply.claim_templates import unwanted_mounts
from member.apply.last_applied import (
    applied,
    fixed_field_change,
    missing_volumes,
    stamped,
    with_fixed_fields,
    with_running_template,
)
from member.labels import CONTROLLER_REVISION_HASH, START_SCRIPT_OPTIONS
from member.lifecycle.creation import is_moving, move, other_owner, other_stateful_set, settled
from member.lifecycle.pod_removal import claims_of_templates
from member.objects.services import keep_allocated
from member.objects.stateful_set import ON_DELETE, is_rolling, ordinals_of
from member.observed.pod import Pod
from member.outcome import FOREIGN_OWNER, Done, Outcome, Refused, Waiting

_LOOK_AGAIN = 10.0
"""Seconds until the operator checks a pod again that is not Ready: it does not watch these pods."""


def apply_service(ctx: Reconcile[Any], desired: Json) -> Object:
    """Apply the desired Service; ports and addresses that Kubernetes allocated stay. Raises like `Reconcile.apply`."""
    cached = ctx.cached(SERVICES, desired["metadata"]["name"])
    if cached is None:
        return ctx.apply(SERVICES, stamped(desired))
    live = cached.decode()
    before = applied(live) or {}
    # count the whole selector as applied, so that foreign keys are removed: with one of them it matches no pod
    whole = before | {"spec": (before.get("spec") or {}) | {"selector": live["spec"].get("selector") or {}}}
    return ctx.apply(SERVICES, stamped(keep_allocated(desired, live), live), applied=whole)


def apply_stateful_set(ctx: Reconcile[Any], desired: Json, field: str = "spec.storageVolumes") -> Outcome:
    """Apply the desired StatefulSet, except for fixed fields; the message of Done names a difference in those.

    The start script of v1.6 stays until its options change. `field` is the field of the spec that defines the volumes.
    Raises like `Reconcile.apply`.
    """
    name = desired["metadata"]["name"]
    cached = ctx.cached(STATEFUL_SETS, name)
    if moving := _moved(ctx, name, cached):
        return moving
    if cached is None:
        if refused := _claim_of_others(ctx, desired):
            return refused
        ctx.apply(STATEFUL_SETS, stamped(desired))
        return Done()
    live = cached.decode()
    desired = desired | {"apiVersion": cached.api_version}
    if refused := _other_mounts(name, live, desired, field):
        return refused
    change = fixed_field_change(live, desired)
    wanted = with_fixed_fields(live, desired)
    if not _asks_for_another_script(live, desired):
        wanted = with_running_template(live, wanted)
    ctx.apply(STATEFUL_SETS, stamped(wanted, live), applied=applied(live))
    if change is None:
        return Done()
    what = f"StatefulSet {name} was created with {change.path} {change.old}, which cannot become {change.new}"
    return Done(f"{what}; delete it, and the operator recreates it; its volumes stay", reason="VolumesKept")


def _moved(ctx: Reconcile[Any], name: str, cached: Object | None) -> Waiting | Refused | None:
    """Move a StatefulSet of the other kind around its pods (lifecycle.md 4.4); None if there is none.

    The operator looks for one while no pod of its own StatefulSet is Ready, or after a move. Raises ApiError,
    TransportError.
    """
    has_moved = cached is not None and is_moving(cached)
    ready = (cached.decode().get("status") or {}).get("readyReplicas") if cached is not None else 0
    runtime = ctx.owned.runtime
    if not has_moved and (ready or not runtime.applier.serves(OTHER_STATEFUL_SETS, runtime.clock.now())):
        return None
    other = other_stateful_set(runtime.client, name, ctx.namespace)
    if other is None or not ctx.controls(other.object):
        return executor_of(runtime).conclude(settled(runtime.client, name, ctx.namespace)) if has_moved else None
    return executor_of(runtime).conclude(move(runtime.client, other))


def _claim_of_others(ctx: Reconcile[Any], desired: Json) -> Refused | None:
    """The refusal to create a StatefulSet whose pods would mount a claim of another owner; claims are read live."""
    name, client = desired["metadata"]["name"], ctx.owned.runtime.client
    for pod in (f"{name}-{ordinal}" for ordinal in ordinals_of(desired)):
        for template in claims_of_templates(desired, pod):
            claim = client.find(PERSISTENT_VOLUME_CLAIMS, template, ctx.namespace)
            owner = other_owner(claim, name, pod) if claim else None
            if owner:
                what = f"PersistentVolumeClaim {template} exists and is controlled by {owner.kind} {owner.name}"
                way_out = f"delete or rename it, or rename the {ctx.owned.resource.kind}"
                return Refused(FOREIGN_OWNER, f"{what}; {way_out}", _LOOK_AGAIN)
    return None


def _asks_for_another_script(live: Json, desired: Json) -> bool:
    """True if the options of the start script differ from those noted in the live StatefulSet."""
    noted, wanted = ((each["metadata"].get("annotations") or {}).get(START_SCRIPT_OPTIONS) for each in (live, desired))
    return noted is not None and noted != wanted


def bring_to_ready(ctx: Reconcile[Any], name: str) -> Outcome:
    """The wait until all pods of the StatefulSet are Ready at its newest revision; Done if they are.

    Deletes pods that block the roll. Raises LookupError, Conflict, other ApiErrors, TransportError.
    """
    cached = ctx.cached(STATEFUL_SETS, name)
    live = cached.decode() if cached is not None else None
    if live is None or not is_observed(live):
        return Waiting("PodNotReady", f"waiting for StatefulSet {name} to make its pod")
    if is_upgrading(live):
        _delete_broken(ctx, live)
        restarted, so_far = _unready(ctx, live)
        what = f"pod {restarted} is being restarted with the newest revision: {so_far}"
        return Waiting("Restarting", what, _LOOK_AGAIN)
    ready, wanted = int((live.get("status") or {}).get("readyReplicas") or 0), int(live["spec"]["replicas"])
    if ready < wanted:
        pod, why = _unready(ctx, live)
        return Waiting("PodNotReady", f"waiting for pod {pod} to be Ready: {why}", _LOOK_AGAIN)
    return Done()


def _unready(ctx: Reconcile[Any], live: Json) -> tuple[str, str]:
    """The first pod with a known trouble, and the trouble; else the first pod. Raises ApiError, TransportError."""
    name, runtime = live["metadata"]["name"], ctx.owned.runtime
    pods = [f"{name}-{ordinal}" for ordinal in ordinals_of(live)] or [f"{name}-0"]
    troubles = ((pod, trouble_of_pod(runtime, ctx.namespace, name, pod)) for pod in pods)
    return next((trouble for trouble in troubles if trouble[1]), (pods[0], "see kubectl describe pod"))


def _delete_broken(ctx: Reconcile[Any], live: Json) -> None:
    """Delete pods of older revisions that are not Ready, which would block the roll forever (R23).

    If pods start in order, and in Kubernetes 1.35, Kubernetes restarts no pod while one is not Ready, even if the old
    template is the cause. It restarts Ready pods itself.
    """
    meta, spec, newest = live["metadata"], live["spec"], live["status"].get("updateRevision")
    if spec["updateStrategy"]["type"] == ON_DELETE or not newest:
        return

    def is_broken(pod: Object) -> bool:
        owner, revision = pod.metadata.controller, pod.metadata.labels.get(CONTROLLER_REVISION_HASH)
        is_outdated = owner is not None and owner.uid == meta["uid"] and revision != newest
        return is_outdated and not pod.decode_as(Pod).is_ready

    client, recorder = ctx.owned.runtime.client, ctx.owned.runtime.recorder
    for ordinal in ordinals_of(live):
        name = f"{meta['name']}-{ordinal}"
        if delete_if(client, PODS, name, ctx.namespace, is_broken):
            what = f"delete Pod {name}, which is not Ready, to restart it with the newest revision"
            recorder.event(ctx.owner, NORMAL, "SuccessfulDelete", what)


class WorkloadStatus(Protocol):
    """The fields about the StatefulSet in the status of a kind."""

    synced: bool
    phase: str
    stateful_set: Json | None


def observe(ctx: Reconcile[Any], status: WorkloadStatus, name: str, made: Outcome | None) -> Outcome:
    """Update the status; return the wait for the pods if `made`, the outcome of the stage before, is Done, else Done.

    `made` is None while the spec is invalid. Raises like `bring_to_ready`.
    """
    live = ctx.cached(STATEFUL_SETS, name)
    status.synced, status.stateful_set = live is not None, None
    if live is not None:
        body = live.decode()
        status.stateful_set = body.get("status") or {}
        status.phase = "Upgrade" if is_upgrading(body) else "Normal"
    return bring_to_ready(ctx, name) if isinstance(made, Done) else Done()


def is_upgrading(live: Json) -> bool:
    """True if a pod of a StatefulSet does not run the newest revision yet (other-resources.md 4)."""
    status = live.get("status") or {}
    outdated = int(status.get("updatedReplicas") or 0) < int(status.get("replicas") or 0)
    return is_rolling(live) or (bool(status.get("updateRevision")) and outdated)


def _other_mounts(name: str, live: Json, desired: Json, field: str) -> Refused | None:
    """The refusal of a spec whose pods could not be created, or would lose a volume: claim templates are immutable."""
    missing, unwanted = missing_volumes(live, desired), unwanted_mounts(live, desired)
    if not missing and not unwanted:
        return None
    what = f"mounts {', '.join(missing)}, which" if missing else f"lacks {', '.join(unwanted)}, with which"
    way_out = f"put {field} back, or delete StatefulSet {name}, and the operator recreates it"
    return Refused(
        "VolumesFixed", f"the spec {what} StatefulSet {name} was created {'without' if missing else 'with'}; {way_out}"
    )
