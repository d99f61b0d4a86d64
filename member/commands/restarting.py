"""Deleting the pod that was told to go, and its volumes: each on a live look at what is decided upon (F5, O5, I10)."""

from collections.abc import Collection

from apis.ordinals import desired_ordinals
from kube.deletion import Destroyer, LiveObject
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from member import labels
from member.apply.writes import record_deletion
from member.commands.annotations import BUSY, SOON, Command
from member.context import ReconcileContext
from member.evidence import Evidence, pods_live, spec_confirmed
from member.naming import member_name, ordinal_of, pod_name
from member.objects.stateful_set import ON_DELETE
from member.observed.claims import own_claims
from member.observed.pods import Pod
from member.outcome import Done, Outcome, Waiting

RESTARTED = "PodRestarted"


def restart(
    ctx: ReconcileContext, pod: Object, command: Command, ignored_pods: Collection[str], because: str
) -> Outcome:
    """Delete a pod that has let go of what it does, when all others but `ignored_pods` serve.

    Raises Conflict when it changed meanwhile, other ApiErrors, TransportError, LeaseExpired.
    """
    if waiting := others_not_ready(ctx, pod, ignored_pods):
        return waiting
    evidence = still_told(ctx, pod, command)
    if isinstance(evidence, Waiting):
        return evidence
    return _delete_pod(ctx, evidence, because)


def restart_without_volumes(ctx: ReconcileContext, pod: Object, command: Command, gone: Evidence) -> Outcome:
    """Delete the volume claims of a pod, then, when none is left that stays, the pod; `gone` is what they held.

    Raises as `restart`.
    """
    evidence = still_told(ctx, pod, command)
    if isinstance(evidence, Waiting):
        return evidence
    destroyer = Destroyer(ctx.deps.client)
    deleted = []
    for name in own_claims(pod):
        claim = destroyer.observe(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
        if claim is not None and claim.object.metadata.deletion_timestamp is None:
            destroyer.delete(claim)
            record_deletion(ctx, PERSISTENT_VOLUME_CLAIMS, name)
            deleted.append(name)
    if deleted:
        return Waiting("ReplacingVolume", f"{', '.join(deleted)} goes together with {pod.metadata.name}", SOON)
    return _delete_pod(ctx, evidence, f"its volumes are made anew: {gone.what}")


def still_told(ctx: ReconcileContext, pod: Object, command: Command) -> LiveObject | Waiting:
    """The pod as it is now, if it is the one that was decided on, still told the same, of a cluster that still is so.

    Raises ApiError, TransportError.
    """
    evidence = Destroyer(ctx.deps.client).observe(PODS, pod.metadata.name, ctx.namespace)
    if evidence is None or evidence.object.metadata.uid != pod.metadata.uid:
        return Waiting("PodChanged", f"waiting until the cache shows that {pod.metadata.name} is another one", SOON)
    if evidence.object.metadata.deletion_timestamp or not command.is_on(evidence.object):
        return Waiting("PodChanged", f"waiting until the cache shows {pod.metadata.name} as it is", SOON)
    if spec_confirmed(ctx) is None:
        return Waiting("SpecChanged", "waiting until the cache shows the TidbCluster as it is", SOON)
    return evidence


def others_not_ready(ctx: ReconcileContext, pod: Object, ignored_pods: Collection[str]) -> Waiting | None:
    """What keeps a pod that serves from going: another one does not, or is about to go (I10).

    Raises ApiError, TransportError.
    """
    kind, name = pod.metadata.labels[labels.COMPONENT], pod.metadata.name
    pods, _ = pods_live(ctx, kind)
    ready = {each.metadata.name for each in pods if _serves(each)}
    wanted = {pod_name(ctx.tc, kind, ordinal) for ordinal in desired_ordinals(ctx.tc, kind)}
    missing = sorted(wanted - ready - {name} - set(ignored_pods))
    if missing:
        return Waiting("PodsNotReady", f"{name} is restarted when {', '.join(missing)} is Ready", BUSY)
    stateful_set = ctx.deps.client.find(STATEFUL_SETS, member_name(ctx.tc, kind), ctx.namespace)
    if stateful_set is None:
        return Waiting("PodsNotReady", f"{name} is restarted when there is a StatefulSet that brings it back", BUSY)
    if going := _about_to_go(stateful_set.decode(), pods):
        return Waiting("RollingUpdate", f"{name} is restarted when {', '.join(going)} has been", BUSY)
    return None


def _about_to_go(body: Json, pods: list[Object]) -> list[str]:
    """The pods that the StatefulSet controller restarts by itself any moment."""
    spec, status = body["spec"], body.get("status") or {}
    strategy = spec["updateStrategy"]
    if strategy["type"] == ON_DELETE:
        return []
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    observed = status.get("observedGeneration", 0) >= body["metadata"].get("generation", 0)
    return [
        each.metadata.name
        for each in pods
        if ordinal_of(each.metadata.name) >= partition
        and not (observed and each.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == status.get("updateRevision"))
    ]


def _serves(pod: Object) -> bool:
    return not pod.metadata.deletion_timestamp and pod.decode_as(Pod).is_ready


def _delete_pod(ctx: ReconcileContext, evidence: LiveObject, because: str) -> Done:
    name = evidence.object.metadata.name
    Destroyer(ctx.deps.client).delete(evidence)
    record_deletion(ctx, PODS, name)
    return Done(f"{name} is restarted: {because}", RESTARTED)
