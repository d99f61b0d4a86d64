"""The creation of a StatefulSet, and its recreation while its pods keep running (lifecycle.md 4.4, 4.6, 10.2, F10).

The feature AdvancedStatefulSet decides of which kind a StatefulSet is. After a switch, the operator moves each one to
the other kind around its pods, and may stop after any write:

    same spec and status in the new kind ── it controls the revisions ── old one deleted, pods orphaned
    ── new one adopts them ── pods get its name for their revision ── it may update pods again

The operator hands over the revisions itself, because an orphaned one may get lost. The controller of Advanced
StatefulSets (v0.7.0) adopts it even for a set that is being deleted, and the garbage collector then removes it. Beside
a revision of its own, the controller does not adopt it but fails, in every sync, and never adopts the pods. v1.6
leaves the revisions to that controller, by a label.

The controllers may write the same template in different bytes, e.g. with `creationTimestamp: null` or without it. The
new one then finds another revision, and would restart all pods. So it may update none (`OnDelete`) until the pods are
labelled with its revision. Until a StatefulSet has moved, its component waits. If the caches show no pod of the other
kind, the operator asks the API server before it creates a StatefulSet, provided that the server knows the kind.

It creates none over volume claims that carry the operator's names but belong to other controllers, because the pods
would mount them. A claim without a controller belongs to the user, who may have restored it; the operator uses it.

To change an immutable field, the operator deletes the StatefulSet without its pods and creates it again; the new one
adopts the pods. They keep running only if the new StatefulSet has exactly the pod template that they run, and at least
as many replicas. The operator finds out both from what is left: the pods, the controller revisions, the volume claims.

A volume that the spec adds or removes comes with a new pod template, and a roll restarts the pods one by one.
Kubernetes gives no running pod a volume, and creates no pod above the lowest one that lacks a volume. So a roll that
adds volumes goes from the lowest ordinal up, by deletion. If a pod above is lost meanwhile, the StatefulSet is
recreated with the volumes that all pods have, until all are Ready again.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import structs

from apis.cluster import Cluster
from apis.components import component_type
from apis.ordinals import OrdinalSet, desired_ordinals
from apis.predicates import tells_of_stateful_set
from kube.actions import Create, Merge, PatchStatus
from kube.client import Client
from kube.deletion import Destroyer, LiveObject
from kube.errors import Forbidden, NotFound
from kube.field_change import all_differences
from kube.objects import Json, Object, OwnerReference, digest, is_observed
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    OTHER_STATEFUL_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from kube.taken_names import TakenNames
from member import labels
from member.actions import Delete
from member.apply.claim_templates import names, sizes_differ, unwanted_mounts
from member.apply.last_applied import fixed_field_change, missing_volumes, read_record, stamped, template_change
from member.apply.stateful_set import Replicas, with_size
from member.apply.writes import annotate_owner, record_deletion
from member.context import ClusterContext
from member.evidence import pods_live, shown_by, spec_confirmed
from member.labels import (
    CONTROLLER_REVISION_HASH,
    DELETE_SLOTS,
    PVC_DEFER_DELETING,
    base_labels,
    config_map_before_delete,
)
from member.lifecycle.pod_removal import claims_of_templates
from member.naming import member_name, ordinal_of, pod_name, pvc_name
from member.objects.config_map import in_use_config_map_name
from member.objects.stateful_set import is_advanced, ordinals_of
from member.observed.claims import lacks_claims, own_claims
from member.observed.nodes import Activity, cached_activity
from member.observed.pod import Pod, is_in_advanced
from member.observed.pods import is_controlled_by, is_pod_of, pods_of, ready_pods
from member.outcome import Refused, Waiting
from ports.structs import decoder

_MARK = "apps.pingcap.com/upgrade-to-asts"
"""The label by which v1.6 leaves a revision, without its other labels, to the Advanced StatefulSet of this name."""

_SHARED = (
    *("replicas", "selector", "serviceName", "podManagementPolicy", "updateStrategy", "template"),
    *("volumeClaimTemplates", "revisionHistoryLimit"),
)
"""The fields of the spec that both kinds of StatefulSets have."""

_COUNTED = (
    *("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "currentRevision", "updateRevision"),
    "collisionCount",
)
"""The fields of the status that both kinds have."""

_MOVED = "tidb.pingcap.com/moved"
"""The annotation of a StatefulSet that may not update pods yet, because it has just moved: a `_Former` as JSON."""

CONVERTING = "Converting"
_SOON = 1.0


class _Former(msgspec.Struct, frozen=True, rename="camel"):
    """How a StatefulSet of the other kind updated pods, and the revisions that are made from its pod template.

    `template` is the digest of the template.
    """

    revisions: Sequence[str]
    template: str
    update_strategy: Json | None


def is_moving(live: Object) -> bool:
    """True if a StatefulSet may not update pods yet, because it has just moved."""
    return _MOVED in live.metadata.annotations


async def moved(ctx: ClusterContext, component: str, *, asks: bool = False) -> Waiting | Refused | None:
    """Move a StatefulSet of the other kind to the kind that the operator uses; None if there is none.

    If no pod shows one, the operator reads it only if it `asks`. Raises ApiError, TransportError, RequeueError.
    """
    name = member_name(ctx.tc, component)
    held = [pod for pod in ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, component)) if _of_other(ctx, pod)]
    own = ctx.stateful_set(component)
    has_moved = own is not None and is_moving(own)
    if not held and not has_moved and not (asks and _may_exist(ctx)):
        return None
    other = other_stateful_set(ctx.deps.client, name, ctx.namespace)
    if other is None and held:
        what = f"waiting for Kubernetes to release pod {held[0].metadata.name}, whose StatefulSet is gone"
        return Waiting(CONVERTING, what, _SOON)
    if other is None:
        return await settled(ctx.deps.client, name, ctx.namespace) if has_moved else None
    if not is_controlled_by(other.object, ctx.owner.metadata.uid):
        what = f"StatefulSet {name} of {other.object.api_version} exists, and this {ctx.tc.kind} does not control it"
        return Refused("ForeignOwner", f"{what}; delete it, or rename the {ctx.tc.kind}", TakenNames.LOOK_AGAIN)
    return await move(ctx.deps.client, other)


def _may_exist(ctx: ClusterContext) -> bool:
    """True if a StatefulSet of the other kind may exist, although no pod shows it."""
    if ctx.tc.metadata.counts_slots:
        return True  # every API server knows native StatefulSets
    return ctx.deps.applier.serves(OTHER_STATEFUL_SETS, ctx.deps.clock.now())


def _of_other(ctx: ClusterContext, pod: Object) -> bool:
    """True if a StatefulSet of the other kind controls one of the cluster's pods."""
    is_orphan = pod.metadata.controller is None
    return not is_orphan and is_in_advanced(pod) is not ctx.tc.metadata.counts_slots and is_pod_of(ctx.name, pod)


def other_stateful_set(client: Client, name: str, namespace: str) -> LiveObject | None:
    """The StatefulSet of this name and of the kind that the operator does not use. Raises ApiError, TransportError."""
    try:
        return Destroyer(client).observe(OTHER_STATEFUL_SETS, name, namespace)
    except (NotFound, Forbidden):
        # the kind has just been deleted, or the operator may not read it: v1.6 may do so only with its feature gate
        return None


async def move(client: Client, other: LiveObject) -> Waiting | Refused:
    """Take the next writes that move a StatefulSet to the kind that the operator uses, around its pods.

    `other` has been read live. Raises ApiError, TransportError, RequeueError.
    """
    body, meta = other.object.decode(), other.object.metadata
    gone = Waiting(CONVERTING, f"waiting for StatefulSet {meta.name} of {body['apiVersion']} to be deleted", _SOON)
    if meta.deletion_timestamp:
        return gone
    own = client.find(STATEFUL_SETS, meta.name, meta.namespace)
    if own is None:
        former = _former(body)
        if former is None:
            return _unobserved(body)
        if refused := _gaps(body):
            return refused
        wanted = _in_own_kind(body)
        tried = client.try_create(STATEFUL_SETS, wanted, meta.namespace).decode()
        if refused := _other_template(wanted, tried):
            return refused
        # the server may leave out empty fields
        former = structs.replace(former, template=_digest(tried))
        wanted["metadata"]["annotations"][_MOVED] = msgspec.json.encode(former).decode()
        own = await Create(STATEFUL_SETS, wanted)
    if own.metadata.deletion_timestamp or not _have_one_owner(own, other.object):
        return Waiting(CONVERTING, f"waiting for the former StatefulSet {meta.name} to be deleted", _SOON)
    before = own.decode().get("status") or {}
    if not before.get("replicas"):
        counts = {field: value for field, value in (body.get("status") or {}).items() if field in _COUNTED}
        await PatchStatus(STATEFUL_SETS, own, before, before | counts)
    made = Destroyer(client).observe(STATEFUL_SETS, meta.name, meta.namespace)
    if made is not None:
        await _hand_over_revisions(client, body, made.object)
        await Delete(other, shown_by(made, f"it continues as {made.object.api_version}"), "Orphan")
    return gone


async def settled(client: Client, name: str, namespace: str) -> Waiting | None:
    """Let a StatefulSet that has moved update pods, once its controller has named its revision and the pods carry it.

    None if it does so already. Raises ApiError, TransportError, RequeueError.
    """
    own = client.find(STATEFUL_SETS, name, namespace)
    if own is None or not is_moving(own):
        return None
    body = own.decode()
    newest = body.get("status", {}).get("updateRevision")
    if not newest or not is_observed(body):
        return _unobserved(body)
    former = _read(own.metadata.annotations[_MOVED])
    if former.template == _digest(body):
        own = await _with_renamed_revisions(client, own, set(former.revisions) - {newest})
    version = {"uid": own.metadata.uid, "resourceVersion": own.metadata.resource_version}
    identity = version | {"name": name, "namespace": namespace}
    strategy = {"updateStrategy": former.update_strategy} if former.update_strategy else {}
    await Merge(STATEFUL_SETS, {"metadata": identity | {"annotations": {_MOVED: None}}, "spec": strategy})
    return Waiting(CONVERTING, f"StatefulSet {name} has moved to {own.api_version}", _SOON)


async def _with_renamed_revisions(client: Client, own: Object, former: Collection[str]) -> Object:
    """Label the pods of these revisions with the newest one, which is made from the same template."""
    body = own.decode()
    status, carried = body["status"], body["spec"]["selector"].get("matchLabels") or {}
    newest = status["updateRevision"]
    for pod in client.list_page(PODS, own.metadata.namespace, label_selector=labels.selector_text(carried)).items:
        if pod.metadata.labels.get(CONTROLLER_REVISION_HASH) in former:
            identity = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid}
            await Merge(PODS, {"metadata": identity | {"labels": {CONTROLLER_REVISION_HASH: newest}}})
    if status.get("currentRevision") not in former:
        return own
    return await PatchStatus(STATEFUL_SETS, own, status, status | {"currentRevision": newest}) or own


def _unobserved(body: Json) -> Waiting:
    kind = "Advanced StatefulSets" if is_advanced(body) else "StatefulSets"
    what = f"waiting for the controller of {kind} to report the revision of {body['metadata']['name']}"
    return Waiting(CONVERTING, f"{what}; check that it runs", _SOON)


def _read(annotation: str) -> _Former:
    """What the annotation says; nothing if another client has spoilt it. The strategy is then applied as any other."""
    try:
        return decoder(_Former).decode(annotation)
    except msgspec.MsgspecError:
        return _Former((), "", None)


def _former(body: Json) -> _Former | None:
    """What to remember of a StatefulSet that moves; None while its controller has not named its revision."""
    newest = (body.get("status") or {}).get("updateRevision")
    if moved := (body["metadata"].get("annotations") or {}).get(_MOVED):
        # the feature was switched back before the pods had the revision of this one
        before = _read(moved)
        return structs.replace(before, revisions=[*before.revisions, *([newest] if newest else ())])
    if not newest or not is_observed(body):
        return None
    return _Former([newest], _digest(body), body["spec"].get("updateStrategy"))


def _digest(body: Json) -> str:
    """A text that is equal for equal pod templates."""
    return digest(body["spec"]["template"]).hex()


def _have_one_owner(own: Object, other: Object) -> bool:
    owners = [obj.metadata.controller for obj in (own, other)]
    return len({owner.uid for owner in owners if owner}) == 1 and all(owners)


def _in_own_kind(body: Json) -> Json:
    """The StatefulSet of the other kind to create in place of `body`."""
    meta = body["metadata"]
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key != DELETE_SLOTS}
    carried = {key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in meta}
    spec = {field: body["spec"][field] for field in _SHARED if field in body["spec"]}
    return {
        "apiVersion": (STATEFUL_SETS if is_advanced(body) else ADVANCED_STATEFUL_SETS).api_version,
        "kind": "StatefulSet",
        "metadata": carried | {"annotations": annotations},
        "spec": spec | {"updateStrategy": {"type": "OnDelete"}},
    }


def _gaps(body: Json) -> Refused | None:
    """The refusal to give up an Advanced StatefulSet that leaves out ordinals: a native one would start their pods."""
    pods = ordinals_of(body)
    left_out = [ordinal for ordinal in range(pods.bound) if ordinal not in pods]
    if not left_out:
        return None
    name = body["metadata"]["name"]
    what = f"StatefulSet {name} leaves out {', '.join(map(str, left_out))}, which a native one cannot"
    way_out = "switch the feature AdvancedStatefulSet on again, and remove the delete slots before you switch it off"
    return Refused("DeleteSlotsInUse", f"{what}; {way_out}", TakenNames.LOOK_AGAIN)


def _other_template(wanted: Json, made: Json) -> Refused | None:
    """The refusal to move pods whose template the API server would change, which would restart them later.

    It fills in default values only for native StatefulSets.
    """
    change = next(all_differences(wanted["spec"]["template"], made["spec"]["template"], "template"), None)
    if change is None:
        return None
    what = f"the API server would change the pod template of StatefulSet {wanted['metadata']['name']}: {change.path}"
    return Refused("TemplateChanges", f"{what}; switch the feature AdvancedStatefulSet on again", TakenNames.LOOK_AGAIN)


async def _hand_over_revisions(client: Client, former: Json, own: Object) -> None:
    """Make `own` the controller of the revisions of the former StatefulSet.

    Those that v1.6 marked in an interrupted move get their labels back.
    """
    meta, carried = former["metadata"], former["spec"]["selector"].get("matchLabels") or {}
    owner = {"kind": "StatefulSet", "name": own.metadata.name, "uid": own.metadata.uid, "controller": True}
    given = {
        "labels": carried | {_MARK: None},
        "ownerReferences": [{"apiVersion": own.decode()["apiVersion"], **owner}],
    }
    for selected in (carried, {_MARK: meta["name"]}):
        selector = labels.selector_text(selected)
        for obj in client.list_page(CONTROLLER_REVISIONS, meta["namespace"], label_selector=selector).items:
            if is_controlled_by(obj, meta["uid"]):
                identity = {"name": obj.metadata.name, "namespace": obj.metadata.namespace, "uid": obj.metadata.uid}
                await Merge(CONTROLLER_REVISIONS, {"metadata": identity | given})


def claim_names(ctx: ClusterContext) -> Sequence[str]:
    """The names of all claims in the namespace; claims of other controllers lack the operator's labels.

    Raises ApiError, TransportError.
    """
    return ctx.deps.client.list_names(PERSISTENT_VOLUME_CLAIMS, ctx.namespace)


def read_claims(ctx: ClusterContext, component: str) -> Sequence[Object]:
    """The metadata of the claims that are named like claims of the component's pods. Raises ApiError, TransportError.

    Reads the names first: mostly no name matches, and the claims need not be read.
    """
    of_pods = re.compile(rf".*-{re.escape(member_name(ctx.tc, component))}-\d+")
    if not any(map(of_pods.fullmatch, claim_names(ctx))):
        return ()
    claims = ctx.deps.client.list_page(PERSISTENT_VOLUME_CLAIMS, ctx.namespace, metadata_only=True).items
    return [claim for claim in claims if of_pods.fullmatch(claim.metadata.name)]


def claim_of_others(ctx: ClusterContext, component: str, desired: Json, claims: Sequence[Object]) -> Refused | None:
    """Refuse to create a StatefulSet over other controllers' claims; the caller has read `claims` live."""
    pods = [pod_name(ctx.tc, component, ordinal) for ordinal in ordinals_of(desired).ordinals]
    pod_of = {claim: pod for pod in pods for claim in claims_of_templates(desired, pod)}
    for claim in claims:
        name, pod = claim.metadata.name, pod_of.get(claim.metadata.name, "")
        owner = other_owner(claim, desired["metadata"]["name"], pod) if pod else None
        if owner:
            what = f"PersistentVolumeClaim {name} exists and is controlled by {owner.kind} {owner.name}"
            way_out = f"delete or rename it, or rename the {ctx.tc.kind}"
            return Refused("ForeignOwner", f"{what}; {way_out}", ctx.memory.taken_names.LOOK_AGAIN)
    return None


def other_owner(claim: Object, stateful_set: str, pod: str) -> OwnerReference | None:
    """A claim's controller; None if that is its own StatefulSet or pod, as a retention policy sets it (KEP-1847)."""
    owner = claim.metadata.controller
    own = ((STATEFUL_SETS.kind, stateful_set), (PODS.kind, pod))
    return None if owner is None or (owner.kind, owner.name) in own else owner


RECREATING = "Recreating"

_RETRY = 0.5

_OF_TEMPLATES = ("accessModes", "resources", "storageClassName", "volumeAttributesClassName")


@dataclass(frozen=True, slots=True)
class PreviousStatefulSet:
    """What a deleted StatefulSet has left.

    `replicas`: the pods that it had at least; None if nothing shows any. `given_up`: the desired pods without those
    that would start on data of a removed member; None if there are no such data. `running`: the pod template of the
    running pods and its record, in the shape of a StatefulSet; None without pods. `volumes`: the claim templates, by
    name, that all these pods mount; None if no pod has ever run. `serves`: all pods are there and Ready.
    `takes_volumes`: a roll may bring other volumes.
    """

    replicas: Replicas | None = None
    running: Json | None = None
    given_up: Replicas | None = None
    volumes: Mapping[str, Json] | None = None
    serves: bool = False
    takes_volumes: bool = False

    def can_take_volumes_of(self, desired: Json) -> bool:
        """True if a roll could bring the volumes of `desired`; see `_with_other_volumes` of `component_sync`."""
        return self.serves or set(names(desired)) <= (self.volumes or {}).keys()

    @property
    def body(self) -> Json | None:
        """The StatefulSet as it may have been: the running template, and the volumes of all pods."""
        if self.running is None:
            return None
        claims = list((self.volumes or {}).values())
        return self.running | {"spec": self.running["spec"] | {"volumeClaimTemplates": claims}}


def previous_stateful_set(ctx: ClusterContext, component: str, claims: Sequence[Object]) -> PreviousStatefulSet:
    """Read live what is left of a component that has no StatefulSet; `claims` are the claims of its pods.

    If the TidbCluster was deleted and recreated, it gets its volumes back this way, whatever its new spec says. Raises
    ApiError, TransportError.
    """
    holds_data = component_type(component).claims.hold_data
    if holds_data:
        # even if no cache shows a pod, its claims exist
        has_traces = any(_pods_with_claims(ctx.tc, component, claims))
    else:
        has_traces = tells_of_stateful_set(ctx.tc, component)
    if not has_traces and not pods_of(ctx, component):
        return PreviousStatefulSet()
    seen = pods_live(ctx, component)
    remaining = [pod for pod in seen.pods if pod.metadata.deletion_timestamp is None]
    names = [pod.metadata.name for pod in remaining]
    given_up: list[int] = []
    if holds_data:
        names += _pods_with_data(ctx.tc, component, claims, given_up=False)
        given_up = [ordinal_of(name) for name in _pods_with_data(ctx.tc, component, claims, given_up=True)]
    volumes = _volumes(ctx, remaining) if _any_ran(remaining) else None
    return PreviousStatefulSet(
        Replicas.as_found(_pods_found(ctx, {ordinal_of(name) for name in names}), seen) if names else None,
        _running(ctx, component, remaining, volumes) if remaining else None,
        Replicas.as_found(left, seen) if (left := _without(ctx, component, given_up)) else None,
        volumes,
        len(remaining) == len(seen.pods) and {pod.metadata.name for pod in ready_pods(remaining)} == set(names),
    )


def _pods_found(ctx: ClusterContext, ordinals: set[int]) -> OrdinalSet:
    """The pods of the previous StatefulSet, of which these were found; only an Advanced one leaves out ordinals."""
    return OrdinalSet.of(ordinals) if ctx.tc.metadata.counts_slots else OrdinalSet(max(ordinals) + 1)


def _without(ctx: ClusterContext, component: str, given_up: Collection[int]) -> OrdinalSet | None:
    """The desired pods without data of removed members; None if that changes nothing."""
    wanted = desired_ordinals(ctx.tc, component)
    if not any(ordinal in wanted for ordinal in given_up):
        return None
    if not ctx.tc.metadata.counts_slots:
        return OrdinalSet(min(given_up))
    stay = OrdinalSet.of([ordinal for ordinal in wanted if ordinal not in given_up])
    return OrdinalSet(stay.replicas, stay.slots | wanted.slots)


def _volumes(ctx: ClusterContext, pods: Sequence[Object]) -> Mapping[str, Json]:
    """The claim templates that all pods mount, with the present settings of the first pod's claims."""
    in_all = set.intersection(
        *({claim.removesuffix(f"-{pod.metadata.name}") for claim in own_claims(pod)} for pod in pods)
    )
    found = {}
    for volume in sorted(in_all):
        claim = ctx.listers.persistent_volume_claims.get(ctx.namespace, pvc_name(volume, pods[0].metadata.name))
        asked = claim.decode()["spec"] if claim is not None else {}
        spec = {field: asked[field] for field in _OF_TEMPLATES if field in asked}
        found[volume] = {"metadata": {"name": volume}, "spec": spec}
    return found


def _pods_with_data(tc: Cluster, component: str, claims: Sequence[Object], *, given_up: bool) -> Iterable[str]:
    """The pods with data in use, or with `given_up` data: claims of removed members are marked (8.9)."""
    # ignore the instance label: a recreated TidbCluster may have another one
    carried = {key: value for key, value in base_labels(tc, component).items() if key != labels.INSTANCE}
    for pod, claim in _pods_with_claims(tc, component, claims):
        meta = claim.metadata
        is_own = carried.items() <= meta.labels.items()
        if is_own and not meta.deletion_timestamp and (PVC_DEFER_DELETING in meta.annotations) is given_up:
            yield pod


def _pods_with_claims(tc: Cluster, component: str, claims: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """The names of pods with data claims, and these claims; matched by name, whatever their labels."""
    row = component_type(component)
    volume = r"data\d+" if row.storage_claims else re.escape(row.data_volume)
    for claim in claims:
        pod = re.sub(rf"^{volume}-", "", claim.metadata.name)
        if pod.rpartition("-")[0] == member_name(tc, component):
            yield pod, claim


def _running(
    ctx: ClusterContext, component: str, pods: Sequence[Object], volumes: Mapping[str, Json] | None
) -> Json | None:
    """The newest revision that any pod runs, if possible one that mounts none but the `volumes` of all pods."""
    run = {pod.metadata.labels.get(CONTROLLER_REVISION_HASH) for pod in pods}
    carried = labels.selector_text(base_labels(ctx.tc, component))
    revisions = ctx.deps.client.list_page(CONTROLLER_REVISIONS, ctx.namespace, label_selector=carried).items
    found = [revision for revision in revisions if revision.metadata.name in run]
    bodies = sorted((obj.decode() for obj in found), key=lambda body: int(body["revision"]), reverse=True)
    shapes = [_as_stateful_set(ctx.tc, component, body) for body in bodies]
    claims = {"spec": {"volumeClaimTemplates": list((volumes or {}).values())}}
    fitting = (shape for shape in shapes if volumes is None or not missing_volumes(claims, shape))
    return next(fitting, shapes[0] if shapes else None)


def _as_stateful_set(tc: Cluster, component: str, revision: Json) -> Json:
    template = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
    metadata = labels.object_meta(tc, member_name(tc, component), base_labels(tc, component))
    annotations = revision["metadata"].get("annotations") or {}
    return {
        "kind": "StatefulSet",
        "metadata": metadata | {"annotations": annotations},
        "spec": {"template": template},
    }


def recreated(previous: PreviousStatefulSet, desired: Json) -> Json:
    """The StatefulSet to create, with its record: `desired` with the old size and the running pod template.

    If the user wants another template, the new StatefulSet gets that one, and a roll restarts the pods one by one.
    """
    if previous.replicas:
        desired = with_size(desired, previous.replicas)
    elif previous.given_up:
        # it grows once the claims of removed members are deleted (F32)
        desired = with_size(desired, previous.given_up)
    if previous.running is None:
        return stamped(desired)
    if previous.volumes is not None and keeps_volumes(previous, desired):
        desired = _with_volumes_of(previous.running, previous.volumes, desired)
    made = stamped(desired)
    if template_change(previous.running, desired):
        return made
    return made | {"spec": made["spec"] | {"template": previous.running["spec"]["template"]}}


def keeps_volumes(previous: PreviousStatefulSet, desired: Json) -> bool:
    """True if the running pods mount other volumes than `desired`; they then keep theirs.

    A pod cannot get another volume. With more claim templates, Kubernetes would not even recreate a lost pod.
    """
    if previous.running is None or previous.volumes is None or previous.takes_volumes:
        return False
    return previous.volumes.keys() != set(names(desired))


def _with_volumes_of(running: Json, volumes: Mapping[str, Json], desired: Json) -> Json:
    """`desired` with these volumes and the running pod template, until the spec asks for a possible change (R26)."""
    wanted = {each["metadata"]["name"]: each for each in desired["spec"].get("volumeClaimTemplates") or ()}
    templates = [wanted.get(name, template) for name, template in volumes.items()]
    record = read_record(running)
    template = (record.spec if record else running["spec"])["template"]
    return desired | {"spec": desired["spec"] | {"template": template, "volumeClaimTemplates": templates}}


def _is_unchanged(live: Object, cached: Object) -> bool:
    now, then = live.metadata, cached.metadata
    return (now.uid, now.generation) == (then.uid, then.generation) and now.deletion_timestamp is None


async def recreate_unstarted(
    ctx: ClusterContext, component: str, cached: Object, body: Json, wanted: Json
) -> Waiting | None:
    """Delete a StatefulSet for recreation if it cannot be changed as wanted and no pod of it has ever run.

    This way the user can take back a volume that no provisioner can create. Raises like `delete_keeping_pods`.
    """
    if _any_ran(pods_of(ctx, component)):
        return None
    if not (fixed_field_change(body, wanted) or unwanted_mounts(body, wanted) or sizes_differ(body, wanted)):
        return None
    pods = pods_live(ctx, component).pods
    if _any_ran(pods) or _any_unheard(ctx, component, pods) or not _are_all(ctx, component, body, pods):
        return None
    # delete the pods, too: they cannot get the new volumes, and Kubernetes would not replace them
    return await _delete(ctx, component, cached, "Foreground")


def _are_all(ctx: ClusterContext, component: str, body: Json, pods: Sequence[Object]) -> bool:
    """True if `pods` are all pods that the StatefulSet has ever had: an unseen one may run, or have left data.

    With ordered creation, later pods without claims have never existed.
    """
    if len(pods) < ((body.get("status") or {}).get("replicas") or 0):
        return False
    if len(pods) >= body["spec"]["replicas"]:
        return True
    if body["spec"].get("podManagementPolicy") == "Parallel" or not pods:
        return False
    seen = {pod.metadata.name for pod in pods}
    names = (pod_name(ctx.tc, component, ordinal) for ordinal in ordinals_of(body).ordinals)
    unseen = tuple(f"-{name}" for name in names if name not in seen)
    return not any(name.endswith(unseen) for name in claim_names(ctx))


def _any_unheard(ctx: ClusterContext, component: str, pods: Iterable[Object]) -> bool:
    """True if a pod may have started on a node that no longer reports."""
    return any(cached_activity(ctx, component, pod) is Activity.UNHEARD for pod in pods)


def _any_ran(pods: Iterable[Object]) -> bool:
    return any(pod.decode_as(Pod).has_run for pod in pods)


async def recreate_for_lost(ctx: ClusterContext, component: str, cached: Object, body: Json) -> Waiting | None:
    """Recreate a StatefulSet that cannot create a lost pod, as one below lacks a volume; None if there is none.

    Raises like `delete_keeping_pods`.
    """
    if not _strands(body, pods_of(ctx, component)) or not _strands(body, pods_live(ctx, component).pods):
        return None
    return await delete_keeping_pods(ctx, component, cached)


def _strands(body: Json, pods: Sequence[Object]) -> bool:
    """True if a pod is missing above one that lacks a volume: Kubernetes does not create it."""
    there = {ordinal_of(pod.metadata.name): lacks_claims(body, pod) for pod in pods}
    lowest = min((ordinal for ordinal, lacks in there.items() if lacks), default=None)
    return lowest is not None and any(each > lowest and each not in there for each in ordinals_of(body).ordinals)


async def delete_keeping_pods(ctx: ClusterContext, component: str, cached: Object) -> Waiting:
    """Delete a StatefulSet but not its pods, for recreation; `cached` is the state on which the caller decided.

    Before that, the operator records the name of its ConfigMap, as v1.6 does. Raises OwnerGone, ApiError,
    TransportError.
    """
    return await _delete(ctx, component, cached, "Orphan")


async def _delete(
    ctx: ClusterContext, component: str, cached: Object, propagation: Literal["Orphan", "Foreground"]
) -> Waiting:
    seen = Destroyer(ctx.deps.client).observe(STATEFUL_SETS, cached.metadata.name, ctx.namespace)
    evidence = spec_confirmed(ctx) if seen and _is_unchanged(seen.object, cached) else None
    if seen is None or evidence is None:
        return Waiting(
            "CacheOutdated",
            f"waiting for the operator's cache to show the current StatefulSet and {ctx.tc.kind}",
            _RETRY,
        )
    in_use = in_use_config_map_name(ctx.tc, component, seen.object.decode())
    await annotate_owner(ctx, {config_map_before_delete(component): in_use})
    await Delete(seen, evidence, propagation=propagation)
    await record_deletion(ctx, STATEFUL_SETS, cached.metadata.name)
    stay = propagation == "Orphan" and cached.decode()["spec"].get("replicas", 1)
    pods = "; its pods keep running" if stay else ""
    what = f"recreating StatefulSet {cached.metadata.name} for its new volumes{pods}"
    return Waiting(RECREATING, what, _RETRY)
