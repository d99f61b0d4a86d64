"""The replacement of volumes that cannot become what the spec wants (lifecycle.md 10.4), and of unprovided claims.

Volumes are replaced pod by pod. A spare pod comes first, as a place to move data to. Then one pod after another gets
the command `replace-volume`, which `member.commands` runs: its member or store leaves PD before its claims are deleted.
The spare pod goes last.

A claim that requests a volume that the spec no longer wants (F47) is immutable, and the pod that mounts it cannot
start. Without a volume it has no data, because it was never bound. So the operator deletes it, and the StatefulSet
creates a new one for the waiting pod. It keeps a claim whose volume will come with data, e.g. because a backup tool has
restored the claim.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeGuard

from apis import pod_commands, predicates
from apis.accessor import Component
from apis.predicates import status_of
from kube.actions import Apply
from kube.deletion import Destroyer
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.actions import Delete
from member.apply.writes import record_deletion
from member.context import ClusterContext
from member.evidence import Evidence, shown_by, spec_confirmed
from member.labels import base_labels
from member.lifecycle import pod_removal
from member.naming import ordinal_of, pod_name, pvc_name
from member.objects.stateful_set import ordinals_of
from member.observed.claims import Claim, ClaimSpec, DesiredVolume, awaits_data, designed_volumes
from member.observed.pods import pods_of
from member.observed.status import NORMAL, is_upgrading
from member.outcome import Done, Outcome, Refused, Waiting
from ports.quantity import parse

REPLACING = "ReplacingVolume"
REFUSED = "VolumeCantChange"
TOO_FEW = "TooFewStores"

_SOON = 0.5
_FEWEST_STORES = 3


class ReplacesVolumes(Protocol):
    """A status that shows if volumes are being replaced pod by pod."""

    vol_replace_in_progress: bool


def refusal(ctx: ClusterContext, spec: Component, why: str, wish: bytes, *, in_vain: bool) -> Refused | None:
    """The refusal of a change that volumes cannot follow, for the reason `why`; None if they may be replaced.

    `in_vain` is True if a volume does not match although the present StatefulSet requests what is wanted; all new
    volumes would come out like that, the spare pod's first. Nothing is replaced for this `wish` again, even after the
    spare pod has gone.
    """
    status = _status(ctx, spec.name)
    if status is not None and not is_on(ctx):
        status.vol_replace_in_progress = False
        ctx.memory.replaced_in_vain.pop(spec.name, None)
    if status is None or not is_on(ctx):
        return Refused(REFUSED, why)
    if spec.type.is_store and spec.workload.replicas < _FEWEST_STORES:
        what = f"the volumes of {spec.workload.replicas} {spec.type.title} pods cannot be replaced one by one"
        return Refused(TOO_FEW, f"{spec.field}.replicas: {what}; set {_FEWEST_STORES} or more")
    if in_vain:
        ctx.memory.replaced_in_vain[spec.name] = wish
    if ctx.memory.replaced_in_vain.get(spec.name) != wish:
        return None
    status.vol_replace_in_progress = False
    vain = "new volumes are no better: something, such as an admission webhook, changes the claims"
    return Refused(REFUSED, f"{vain}; mend that, set the size or class back, and then once more; {why}")


def is_idle(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if no other operation runs on the pods of a StatefulSet."""
    return is_settled(ctx, component, body) and isinstance(ctx.outcomes.get(component), Done)


def is_settled(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if the pods are neither rolled nor scaled; they need not be Ready."""
    return predicates.in_phase(ctx.tc, component, NORMAL) and not is_upgrading(body, pods_of(ctx, component))


async def replace(ctx: ClusterContext, spec: Component, body: Json, stale: Mapping[str, str]) -> Waiting:
    """Take the next step for pods with volumes in `stale`, with the cause of each. Raises ApiError, TransportError."""
    first, why = next(iter(stale.items()))
    status = _status(ctx, spec.name)
    if status is not None and not status.vol_replace_in_progress:
        status.vol_replace_in_progress = True
        return Waiting(REPLACING, f"replacing the volumes of {', '.join(stale)}: {why}", _SOON)
    if pod := _being_replaced(ctx, spec.name):
        return Waiting(
            REPLACING, f"replacing the volumes of pod {pod.metadata.name}; its progress is reported in events"
        )
    pod = ctx.listers.pods.get(ctx.namespace, first)
    if pod is None or pod.metadata.deletion_timestamp or not is_idle(ctx, spec.name, body):
        return Waiting(REPLACING, f"waiting until {spec.name} is idle before replacing the volumes of pod {first}")
    if not _are_still(ctx, spec.name, body, first):
        return Waiting(
            "CacheOutdated", f"waiting for the operator's cache to show the current volume claims of pod {first}", _SOON
        )
    name = {"name": first, "namespace": ctx.namespace}
    await Apply(PODS, {"metadata": name | {"annotations": {pod_commands.REPLACE_VOLUME: "true"}}}, pod)
    return Waiting(REPLACING, f"annotated pod {first} to replace its volumes: {why}")


def _are_still(ctx: ClusterContext, component: str, body: Json, pod: str) -> bool:
    """True if the pod's claims, read live, are those in the cache: otherwise they may be new ones already (F1)."""
    cached, live = (
        {claim.metadata.uid for claim in look(ctx, component, body, ordinal_of(pod)).claims}
        for look in (pod_removal.cached, pod_removal.live)
    )
    return cached == live


def finish(ctx: ClusterContext, component: str, *, all_seen: bool) -> Outcome:
    """The remaining steps when no volume is stale, or when none may be replaced.

    `all_seen` is True if the cache shows every claim as bound: a claim that it lacks may be stale (F1).
    """
    ctx.memory.replaced_in_vain.pop(component, None)
    status = _status(ctx, component)
    if status is None or not status.vol_replace_in_progress:
        return Done()
    if is_on(ctx) and not all_seen:
        return Waiting(REPLACING, f"waiting for all volumes of {component} to be bound")
    if is_on(ctx) and ((pod := _being_replaced(ctx, component)) or not isinstance(ctx.outcomes.get(component), Done)):
        what = (
            f"replacing the volumes of pod {pod.metadata.name}"
            if pod
            else f"all volumes of {component} have been replaced"
        )
        return Waiting(REPLACING, f"{what}; waiting until {component} is idle")
    status.vol_replace_in_progress = False
    return Waiting(REPLACING, f"all volumes of {component} have been replaced; removing the spare pod", _SOON)


def is_on(ctx: ClusterContext) -> bool:
    """True if the user allows the replacement of volumes, in this cluster or in all."""
    return bool(ctx.tc.spec.enable_pvc_replace) or ctx.settings.replaces_volumes


def _being_replaced(ctx: ClusterContext, component: str) -> Object | None:
    return next(
        (pod for pod in pods_of(ctx, component) if pod_commands.REPLACE_VOLUME in pod.metadata.annotations), None
    )


def _status(ctx: ClusterContext, component: str) -> ReplacesVolumes | None:
    """The status with the progress, which adds a spare replica from the next reconcile on (apis.ordinals).

    None for a component whose volumes are never replaced; v1.6 leaves its pods annotated forever (lifecycle.md 10.4).
    """
    status: object = status_of(ctx.tc, component)
    return status if _replaces_volumes(status) else None


def _replaces_volumes(status: object) -> TypeGuard[ReplacesVolumes]:
    return hasattr(status, "vol_replace_in_progress")


_RETRY = 0.5
"""Seconds."""


async def remake(ctx: ClusterContext, spec: Component, body: Json) -> Waiting | Refused | None:
    """Delete the unbound claims of a StatefulSet that must be recreated; None if there are none.

    The StatefulSet already requests what the spec wants. Refuses claims that await data, and claims that came out the
    same when they were recreated. Raises ApiError, TransportError.
    """
    unwanted = list(_unwanted(ctx, spec, body))
    awaiting = [obj for obj in unwanted if awaits_data(obj)]
    others = [obj for obj in unwanted if not awaits_data(obj)]
    in_vain = [obj for obj in others if _is_as_before(ctx, body, obj)]
    outdated = [obj for obj in others if not _is_as_before(ctx, body, obj)]
    if outdated and (evidence := spec_confirmed(ctx)):
        for cached in outdated:
            await _delete(ctx, body, cached, evidence)
    if kept := _kept(spec, awaiting, in_vain):
        return kept
    if not outdated:
        return None
    names = ", ".join(obj.metadata.name for obj in outdated)
    what = f"replacing PersistentVolumeClaim {names}, which has no volume yet, to match {spec.field}"
    return Waiting("RemakingClaims", what, _RETRY)


def _kept(spec: Component, awaiting: Sequence[Object], in_vain: Sequence[Object]) -> Refused | None:
    """The refusal of claims that stay although they differ from the spec; None if there are none."""
    if awaiting:
        claims = _described(awaiting)
        return Refused(
            "VolumeCantChange",
            f"{spec.field}: {claims} stays, as its volume is to come with data, such as from a snapshot; let the "
            "spec ask for the same, or delete the claim if its data is not needed",
        )
    if in_vain:
        claims = _described(in_vain)
        return Refused(
            "VolumeCantChange",
            f"{spec.field}: {claims} is no better after its recreation: something, such as an admission "
            "webhook, changes it; mend that and delete the claim, or let the spec ask for the same",
        )
    return None


def _is_as_before(ctx: ClusterContext, body: Json, claim: Object) -> bool:
    """True if a claim requests the same as its predecessor, which was deleted so that this StatefulSet recreates it."""
    name, uid = claim.metadata.name, claim.metadata.uid
    made_by, before, asked = ctx.memory.remade_claims.get(name, ("", "", ""))
    return uid != before and (body["metadata"]["uid"], _requested(claim)) == (made_by, asked)


def _described(claims: Sequence[Object]) -> str:
    """The names of claims, with what they request."""
    return f"PersistentVolumeClaim {', '.join(f'{claim.metadata.name} ({_requested(claim)})' for claim in claims)}"


def _requested(claim: Object) -> str:
    asked = claim.decode_as(Claim).spec
    of_class = f" of storage class {asked.storage_class_name}" if asked.storage_class_name else ""
    return f"{asked.resources.requests.storage}{of_class}"


def _unwanted(ctx: ClusterContext, spec: Component, body: Json) -> Iterator[Object]:
    carried, volumes = base_labels(ctx.tc, spec.name).items(), designed_volumes(ctx, spec.name)
    for ordinal in ordinals_of(body).ordinals:
        for wanted in volumes:
            name = pvc_name(wanted.name, pod_name(ctx.tc, spec.name, ordinal))
            claim = ctx.listers.persistent_volume_claims.get(ctx.namespace, name)
            if claim is None or claim.metadata.deletion_timestamp or not carried <= claim.metadata.labels.items():
                continue
            asked = claim.decode_as(Claim).spec
            if not asked.volume_name and _is_unwanted(ctx, asked, wanted):
                yield claim


def _is_unwanted(ctx: ClusterContext, asked: ClaimSpec, wanted: DesiredVolume) -> bool:
    """True if the claim would get a volume of another class, or a larger one; a smaller one can grow later."""
    if parse(asked.resources.requests.storage) > parse(wanted.size):
        return True
    if wanted.storage_class:
        return asked.storage_class_name != wanted.storage_class
    # any default class is accepted, but not a class that does not exist
    classes = ctx.listers.storage_classes
    return bool(asked.storage_class_name) and classes is not None and classes.get("", asked.storage_class_name) is None


async def _delete(ctx: ClusterContext, body: Json, cached: Object, wanted: Evidence) -> None:
    """Delete a claim, if a live read shows that it has no volume and awaits no data."""
    seen = Destroyer(ctx.deps.client).observe(PERSISTENT_VOLUME_CLAIMS, cached.metadata.name, ctx.namespace)
    if seen is None or seen.object.metadata.uid != cached.metadata.uid:
        return
    if seen.object.decode_as(Claim).spec.volume_name or seen.object.metadata.deletion_timestamp:
        return
    if awaits_data(seen.object):
        return
    await Delete(seen, wanted & shown_by(seen, "the claim has no volume, and awaits no data"))
    name, uid = cached.metadata.name, cached.metadata.uid
    ctx.memory.remade_claims[name] = (body["metadata"]["uid"], uid, _requested(cached))
    await record_deletion(ctx, PERSISTENT_VOLUME_CLAIMS, name)
