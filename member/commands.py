"""The common parts of commands for single pods, which users give by annotations (lifecycle.md 13).

A pod, and its volumes, are deleted for a command after live reads of all conditions (F5, O5, I10). `replace-volume`
recreates the volumes with the pod after its member or store has left PD. A claim is deleted only with evidence that its
data is given up (I1, I2). A removed member or store cannot return, so claims and pod are marked first, and a
replacement that has begun is completed even if the user withdraws the command. A pod that is recreated in between gets
the mark from its claims (`meta.labelling`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from apis import pod_commands, predicates
from kube.actions import Apply
from kube.deletion import Destroyer, LiveObject
from kube.objects import Json, Object, is_observed
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from member import labels
from member.actions import Delete
from member.apply.writes import record_deletion
from member.context import ClusterContext
from member.evidence import Evidence, pods_live, spec_or_wait
from member.naming import member_name, ordinal_of
from member.objects.stateful_set import ON_DELETE
from member.observed.claims import own_claims, volume_being_deleted
from member.observed.command_annotations import Command
from member.observed.pod import Pod
from member.observed.pods import wanted_pods
from member.outcome import Done, Outcome, Waiting

RETRY_BUSY = 60.0
"""Seconds until the next poll while another operation runs in the cluster."""

RETRY_DRAINING = 15.0
"""Seconds until the next poll while leaders or data move away."""

RETRY_SOON = 0.5
"""Seconds until the next poll if an event will probably come first."""


async def withdraw(carrier: Object, keys: Sequence[str], resource: Resource = PODS) -> None:
    """Remove annotations of a pod, or of another resource.

    Raises Conflict if the object has changed meanwhile, other ApiErrors, TransportError.
    """
    meta = carrier.metadata
    there = {key: meta.annotations[key] for key in keys if key in meta.annotations}
    desired = {"metadata": {"name": meta.name, "namespace": meta.namespace, "annotations": {}}}
    await Apply(resource, desired, carrier, applied={"metadata": {"annotations": there}})


RESTARTED = "PodRestarted"
REPLACING = "ReplacingVolume"


@dataclass(frozen=True, slots=True)
class ConfirmedCommand:
    """A pod, read live, that still carries its command; `unchanged` is evidence that the spec is the one decided on."""

    pod: LiveObject
    unchanged: Evidence


async def restart(
    ctx: ClusterContext, pod: Object, command: Command, ignored_pods: Collection[str], because: str
) -> Outcome:
    """Delete the pod of a command if all others except `ignored_pods` are Ready.

    Raises Conflict if the pod has changed meanwhile, other ApiErrors, TransportError, LeaseExpired.
    """
    if waiting := others_not_ready(ctx, pod, ignored_pods):
        return waiting
    confirmed = confirm(ctx, pod, command)
    if isinstance(confirmed, Waiting):
        return confirmed
    return await _delete_pod(ctx, confirmed.pod, confirmed.unchanged, because)


async def restart_without_volumes(ctx: ClusterContext, pod: Object, command: Command, gone: Evidence) -> Outcome:
    """Delete the claims of a pod and, in a later reconcile, the pod. `gone` is evidence that their data is given up.

    Raises the same errors as `restart`.
    """
    confirmed = confirm(ctx, pod, command)
    if isinstance(confirmed, Waiting):
        return confirmed
    destroyer = Destroyer(ctx.deps.client)
    deleted = []
    for name in own_claims(pod):
        claim = destroyer.observe(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
        if claim is not None and claim.object.metadata.deletion_timestamp is None:
            await Delete(claim, confirmed.unchanged & gone)
            await record_deletion(ctx, PERSISTENT_VOLUME_CLAIMS, name)
            deleted.append(name)
    if deleted:
        return Waiting(
            "ReplacingVolume", f"deleted {', '.join(deleted)}; deleting pod {pod.metadata.name} next", RETRY_SOON
        )
    return await _delete_pod(ctx, confirmed.pod, confirmed.unchanged & gone, f"replacing its volumes: {gone.what}")


def confirm(ctx: ClusterContext, pod: Object, command: Command) -> ConfirmedCommand | Waiting:
    """The pod, read live, if it is still the same pod with the same command, and the spec has not changed.

    Raises ApiError, TransportError.
    """
    seen = Destroyer(ctx.deps.client).observe(PODS, pod.metadata.name, ctx.namespace)
    if seen is None or seen.object.metadata.uid != pod.metadata.uid:
        return Waiting(
            "PodChanged",
            f"waiting for the operator's cache to show that pod {pod.metadata.name} was recreated",
            RETRY_SOON,
        )
    if seen.object.metadata.deletion_timestamp or not command.is_on(seen.object):
        return Waiting(
            "PodChanged",
            f"waiting for the operator's cache to show the current state of pod {pod.metadata.name}",
            RETRY_SOON,
        )
    wanted = spec_or_wait(ctx, RETRY_SOON)
    return wanted if isinstance(wanted, Waiting) else ConfirmedCommand(seen, wanted)


def others_not_ready(ctx: ClusterContext, pod: Object, ignored_pods: Collection[str]) -> Waiting | None:
    """The wait while another pod is not Ready, or is about to restart (I10); None if the pod may restart.

    Raises ApiError, TransportError.
    """
    kind, name = pod.metadata.labels[labels.COMPONENT], pod.metadata.name
    pods = pods_live(ctx, kind).pods
    ready = {each.metadata.name for each in pods if serves(each)}
    missing = sorted({*wanted_pods(ctx, kind)} - ready - {name} - set(ignored_pods))
    if missing:
        return Waiting(
            "PodsNotReady", f"waiting for {', '.join(missing)} to be Ready before restarting pod {name}", RETRY_BUSY
        )
    stateful_set = ctx.deps.client.find(STATEFUL_SETS, member_name(ctx.tc, kind), ctx.namespace)
    if stateful_set is None:
        return Waiting("PodsNotReady", f"waiting for the StatefulSet to exist before restarting pod {name}", RETRY_BUSY)
    if restarting := _about_to_restart(stateful_set.decode(), pods):
        return Waiting(
            "RollingUpdate",
            f"waiting for {', '.join(restarting)} to be restarted before restarting pod {name}",
            RETRY_BUSY,
        )
    return None


def _about_to_restart(body: Json, pods: Sequence[Object]) -> list[str]:
    """The pods that the StatefulSet controller may restart at any moment."""
    spec, status = body["spec"], body.get("status") or {}
    strategy = spec["updateStrategy"]
    if strategy["type"] == ON_DELETE:
        return []
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    observed = is_observed(body)
    return [
        pod.metadata.name
        for pod in pods
        if ordinal_of(pod.metadata.name) >= partition
        and not (observed and pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == status.get("updateRevision"))
    ]


def serves(pod: Object) -> bool:
    """True if a pod is Ready and not terminating."""
    return not pod.metadata.deletion_timestamp and pod.decode_as(Pod).is_ready


async def _delete_pod(ctx: ClusterContext, seen: LiveObject, why: Evidence, because: str) -> Done:
    name = seen.object.metadata.name
    await Delete(seen, why)
    await record_deletion(ctx, PODS, name)
    return Done(f"restarting pod {name}: {because}", RESTARTED)


def is_cancelled(ctx: ClusterContext, pod: Object, command: Command) -> bool:
    """True if the user has withdrawn a replacement before it began."""
    return is_withdrawn(command) and not has_begun(ctx, pod)


async def begin(ctx: ClusterContext, pod: Object, command: Command) -> Evidence | Waiting:
    """Mark a pod that still carries the command, and its claims; return the evidence once all are marked."""
    confirmed = confirm(ctx, pod, command)
    if isinstance(confirmed, Waiting):
        return confirmed
    carriers = [*_claims(ctx, pod), (PODS, confirmed.pod.object)]
    unmarked = [each for each in carriers if pod_commands.REPLACEMENT_BEGUN not in each[1].metadata.annotations]
    for resource, carrier in unmarked:
        name = {"name": carrier.metadata.name, "namespace": ctx.namespace}
        marked = {"metadata": name | {"annotations": {pod_commands.REPLACEMENT_BEGUN: "true"}}}
        await Apply(resource, marked, carrier)
    return (
        Waiting(REPLACING, f"starting to replace the volumes of pod {pod.metadata.name}", RETRY_SOON)
        if unmarked
        else confirmed.unchanged
    )


def has_begun(ctx: ClusterContext, pod: Object) -> bool:
    """True if a claim, read live, is marked: the cache may show a pod's former claims."""
    return any(pod_commands.REPLACEMENT_BEGUN in claim.metadata.annotations for _, claim in _claims(ctx, pod))


def store_label(ctx: ClusterContext, pod: Object) -> str:
    """The id of the store that left, from the labels of the pod or its claims; empty if neither has it."""
    carriers = (pod, *(claim for _, claim in _claims(ctx, pod)))
    return next(filter(None, (obj.metadata.labels.get(labels.STORE_ID) for obj in carriers)), "")


def _claims(ctx: ClusterContext, pod: Object) -> list[tuple[Resource, Object]]:
    destroyer, resource = Destroyer(ctx.deps.client), PERSISTENT_VOLUME_CLAIMS
    found = (destroyer.observe(resource, name, ctx.namespace) for name in own_claims(pod))
    return [(resource, claim.object) for claim in found if claim]


def is_withdrawn(command: Command) -> bool:
    return command.key == pod_commands.REPLACEMENT_BEGUN


async def cancel(ctx: ClusterContext, pod: Object) -> Waiting:
    for resource, carrier in (*_claims(ctx, pod), (PODS, pod)):
        await withdraw(carrier, (pod_commands.REPLACEMENT_BEGUN,), resource)
    return Waiting(REPLACING, f"the replacement was cancelled; pod {pod.metadata.name} keeps its volumes", RETRY_SOON)


def component_busy(ctx: ClusterContext, pod: str, component: str, *phases: predicates.Phase) -> Waiting | None:
    busy = predicates.in_phase(ctx.tc, component, *(phases or ("Upgrade", "Scale")))
    if not busy or volume_being_deleted(ctx, component):
        # a roll does not progress while a volume is being deleted
        return None
    what = f"waiting until {component} is neither being upgraded nor scaled before replacing the volumes of pod {pod}"
    return Waiting("ComponentBusy", what, RETRY_BUSY)
