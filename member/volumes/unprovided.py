"""Claims without a volume that request one that the spec no longer wants (F47).

Such a claim is immutable, and the pod that mounts it cannot start. It has no data, because it was never bound. So the
operator deletes it, and the StatefulSet creates a new one for the waiting pod. It keeps a claim whose volume will come
with data, e.g. because a backup tool has restored the claim.
"""

from collections.abc import Iterator, Sequence

from apis.accessor import Component
from kube.deletion import Destroyer
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.actions import Delete
from member.apply.writes import record_deletion
from member.context import ClusterContext
from member.evidence import Evidence, shown_by, spec_confirmed
from member.labels import base_labels
from member.naming import pod_name, pvc_name
from member.observed.claims import Claim, ClaimSpec, awaits_data
from member.observed.volumes import DesiredVolume, desired_volumes
from member.outcome import Refused, Waiting
from ports.quantity import parse

_RETRY = 0.5
"""Seconds."""


async def remake(ctx: ClusterContext, spec: Component, body: Json) -> Waiting | Refused | None:
    """Delete the unbound claims of a StatefulSet that must be recreated; None if there are none.

    The StatefulSet already requests what the spec wants. Refuses claims that await data, and claims that came out the
    same when they were recreated. Raises ApiError, TransportError.
    """
    unwanted = list(_unwanted(ctx, spec, body))
    awaiting = [each for each in unwanted if awaits_data(each)]
    others = [each for each in unwanted if not awaits_data(each)]
    in_vain = [each for each in others if _is_as_before(ctx, body, each)]
    outdated = [each for each in others if not _is_as_before(ctx, body, each)]
    if outdated and (wanted := spec_confirmed(ctx)):
        for cached in outdated:
            await _delete(ctx, body, cached, wanted)
    if kept := _kept(spec, awaiting, in_vain):
        return kept
    if not outdated:
        return None
    names = ", ".join(each.metadata.name for each in outdated)
    what = f"replacing PersistentVolumeClaim {names}, which has no volume yet, to match {spec.field}"
    return Waiting("RemakingClaims", what, _RETRY)


def _kept(spec: Component, awaiting: Sequence[Object], in_vain: Sequence[Object]) -> Refused | None:
    """The refusal of claims that stay although they differ from the spec; None if there are none."""
    if awaiting:
        claims = _told(awaiting)
        return Refused(
            "VolumeCantChange",
            f"{spec.field}: {claims} is kept, as its volume is to come with data, such as from a snapshot; let the "
            "spec ask for the same, or delete the claim if nobody needs that data",
        )
    if in_vain:
        claims = _told(in_vain)
        return Refused(
            "VolumeCantChange",
            f"{spec.field}: {claims} came out no better when it was made again, as something, such as an admission "
            "webhook, changes what is asked for; mend that and delete the claim, or let the spec ask for the same",
        )
    return None


def _is_as_before(ctx: ClusterContext, body: Json, claim: Object) -> bool:
    """True if a claim requests the same as its predecessor, which was deleted so that this StatefulSet recreates it."""
    name, uid = claim.metadata.name, claim.metadata.uid
    made_by, before, asked = ctx.memory.remade_claims.get(name, ("", "", ""))
    return uid != before and (body["metadata"]["uid"], _asked(claim)) == (made_by, asked)


def _told(claims: Sequence[Object]) -> str:
    """The names of claims, with what they request."""
    return f"PersistentVolumeClaim {', '.join(f'{each.metadata.name} ({_asked(each)})' for each in claims)}"


def _asked(claim: Object) -> str:
    asked = claim.decode_as(Claim).spec
    of_class = f" of storage class {asked.storage_class_name}" if asked.storage_class_name else ""
    return f"{asked.resources.requests.storage}{of_class}"


def _unwanted(ctx: ClusterContext, spec: Component, body: Json) -> Iterator[Object]:
    carried, volumes = base_labels(ctx.tc, spec.name).items(), desired_volumes(ctx.tc, spec.name)
    for ordinal in range(body["spec"]["replicas"]):
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
    ctx.memory.remade_claims[name] = (body["metadata"]["uid"], uid, _asked(cached))
    await record_deletion(ctx, PERSISTENT_VOLUME_CLAIMS, name)
