"""A StatefulSet that is made again: its pods go on as they are (lifecycle.md 4.6, 10.2, F10).

What can't be changed in a StatefulSet changes by deleting it with its pods left behind, and making it again: it takes
them back. They keep running only if the new one has the pod template that they run, to the letter, and no fewer
replicas. Both are read from what the old one has left: its pods, the revisions of its template, the volume claims.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from apis.cluster import Cluster
from apis.components import component_type
from apis.predicates import tells_of_stateful_set
from kube.deletion import Destroyer
from kube.objects import Json, Object
from kube.resources import CONTROLLER_REVISIONS, STATEFUL_SETS
from member import labels
from member.apply.claim_templates import names, sizes_differ, unwanted_mounts
from member.apply.last_applied import fixed_field_change, read_record, stamped, template_change
from member.apply.stateful_set import Replicas, with_size
from member.apply.writes import annotate_owner, record_deletion
from member.context import ClusterContext
from member.evidence import delete, pods_live, spec_confirmed
from member.labels import CONTROLLER_REVISION_HASH, PVC_DEFER_DELETING, base_labels, config_map_before_delete
from member.lifecycle.claims_of_others import claim_names
from member.naming import member_name, ordinal_of, pod_name, pvc_name
from member.objects.config_map import in_use_config_map_name
from member.observed.activity import Activity, cached_activity
from member.observed.claims import own_claims
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Waiting

RECREATING = "Recreating"

_RETRY = 0.5

_OF_TEMPLATES = ("accessModes", "resources", "storageClassName", "volumeAttributesClassName")


@dataclass(frozen=True, slots=True)
class PreviousStatefulSet:
    """What a StatefulSet that is gone has left.

    `replicas` it had at least, None when nothing tells; below the ordinal `given_up`, no pod has data of a member that
    was removed. `running` has the pod template that its pods run and the record of it, in the shape of a StatefulSet;
    None without pods. `volumes` are the claim templates, by name, of what all of these pods mount; None where nothing
    has ever run in them.
    """

    replicas: Replicas | None = None
    running: Json | None = None
    given_up: Replicas | None = None
    volumes: Mapping[str, Json] | None = None


def previous_stateful_set(ctx: ClusterContext, component: str, claims: Sequence[Object]) -> PreviousStatefulSet:
    """Look live at what there is of a component that has no StatefulSet; `claims` are those of its pods.

    A TidbCluster that was itself deleted and created again finds its volumes so, whatever it asks for now. Raises
    ApiError, TransportError.
    """
    holds_data = component_type(component).claims.hold_data
    if holds_data:
        # a pod that no cache shows would keep its claims
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
    replicas = Replicas.as_found(max(ordinal_of(name) + 1 for name in names), seen) if names else None
    return PreviousStatefulSet(
        replicas,
        _running(ctx, component, remaining) if remaining else None,
        Replicas.as_found(min(given_up), seen) if given_up else None,
        _volumes(ctx, remaining) if _any_ran(remaining) else None,
    )


def _volumes(ctx: ClusterContext, pods: Sequence[Object]) -> Mapping[str, Json]:
    """The claim templates of what all pods mount, as the claims of the first one are now."""
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
    """The pods with data in use, or with `given_up` data: a member that was removed has its claims marked (8.9)."""
    # whatever instance name they carry: the cluster may have got another one with its new TidbCluster
    carried = {key: value for key, value in base_labels(tc, component).items() if key != labels.INSTANCE}
    for pod, claim in _pods_with_claims(tc, component, claims):
        meta = claim.metadata
        is_own = carried.items() <= meta.labels.items()
        if is_own and not meta.deletion_timestamp and (PVC_DEFER_DELETING in meta.annotations) is given_up:
            yield pod


def _pods_with_claims(tc: Cluster, component: str, claims: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """The claims for data with names of the component, whatever they carry, and the names of their pods."""
    row = component_type(component)
    volume = r"data\d+" if row.storage_claims else re.escape(row.data_volume)
    for claim in claims:
        pod = re.sub(rf"^{volume}-", "", claim.metadata.name)
        if pod.rpartition("-")[0] == member_name(tc, component):
            yield pod, claim


def _running(ctx: ClusterContext, component: str, pods: Sequence[Object]) -> Json | None:
    """The newest revision that some pod runs."""
    run = {pod.metadata.labels.get(CONTROLLER_REVISION_HASH) for pod in pods}
    carried = labels.selector_text(base_labels(ctx.tc, component))
    revisions = ctx.deps.client.list_page(CONTROLLER_REVISIONS, ctx.namespace, label_selector=carried).items
    found = [each for each in revisions if each.metadata.name in run]
    bodies = [each.decode() for each in found]
    newest = max(bodies, key=lambda body: int(body["revision"]), default=None)
    return None if newest is None else _as_stateful_set(ctx.tc, component, newest)


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
    """The StatefulSet to make, with its record: `desired`, but as large as it was and with the template that runs.

    Another template than that goes in when the user wants another; then the roll takes its time over the pods.
    """
    if previous.replicas:
        desired = with_size(desired, previous.replicas)
    elif previous.given_up and previous.given_up.count < desired["spec"]["replicas"]:
        # it grows when the claims that are in the way are gone (F32)
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
    """Whether the pods have other volumes than are desired, and keep them, as those of a StatefulSet that is there do.

    Nobody gives a pod another volume: Kubernetes would do nothing more for any of them, not even make one that is lost.
    """
    if previous.running is None or previous.volumes is None:
        return False
    return previous.volumes.keys() != set(names(desired))


def _with_volumes_of(running: Json, volumes: Mapping[str, Json], desired: Json) -> Json:
    """`desired` with these volumes and the pod template that runs, until the user wants what can be had (R26)."""
    wanted = {each["metadata"]["name"]: each for each in desired["spec"].get("volumeClaimTemplates") or ()}
    templates = [wanted.get(name, template) for name, template in volumes.items()]
    record = read_record(running)
    template = (record.spec if record else running["spec"])["template"]
    return desired | {"spec": desired["spec"] | {"template": template, "volumeClaimTemplates": templates}}


def _is_unchanged(live: Object, cached: Object) -> bool:
    now, then = live.metadata, cached.metadata
    return (now.uid, now.generation) == (then.uid, then.generation) and now.deletion_timestamp is None


def remade_before_it_ran(
    ctx: ClusterContext, component: str, cached: Object, body: Json, wanted: Json
) -> Waiting | None:
    """Make a StatefulSet again that can't be changed into what is wanted, if nothing has ever run in any of its pods.

    So a volume that nobody can provide may be taken back. Raises as `delete_keeping_pods`.
    """
    if _any_ran(pods_of(ctx, component)):
        return None
    if not (fixed_field_change(body, wanted) or unwanted_mounts(body, wanted) or sizes_differ(body, wanted)):
        return None
    pods = pods_live(ctx, component).pods
    if _any_ran(pods) or _any_unheard(ctx, component, pods) or not _are_all(ctx, component, body, pods):
        return None
    # with the pods: Kubernetes could not give them the volumes of the new one, and would do nothing more
    return _delete(ctx, component, cached, "Foreground")


def _are_all(ctx: ClusterContext, component: str, body: Json, pods: Sequence[Object]) -> bool:
    """Whether a StatefulSet has had no other pods than these: one that is not seen may run, or have left data.

    One that makes its pods in order has made no claims for those to come.
    """
    if len(pods) < ((body.get("status") or {}).get("replicas") or 0):
        return False
    if len(pods) >= body["spec"]["replicas"]:
        return True
    if body["spec"].get("podManagementPolicy") == "Parallel" or not pods:
        return False
    seen = {pod.metadata.name for pod in pods}
    names = (pod_name(ctx.tc, component, ordinal) for ordinal in range(body["spec"]["replicas"]))
    unseen = tuple(f"-{name}" for name in names if name not in seen)
    return not any(name.endswith(unseen) for name in claim_names(ctx))


def _any_unheard(ctx: ClusterContext, component: str, pods: Iterable[Object]) -> bool:
    """Whether a pod may have started on a node that reports nothing any more."""
    return any(cached_activity(ctx, component, pod) is Activity.UNHEARD for pod in pods)


def _any_ran(pods: Iterable[Object]) -> bool:
    return any(pod.decode_as(Pod).has_run for pod in pods)


def delete_keeping_pods(ctx: ClusterContext, component: str, cached: Object) -> Waiting:
    """Delete a StatefulSet, its pods staying, so that it is made again; `cached` is what the decision was made on.

    The ConfigMap that it uses is remembered first, as v1.6 does. Raises OwnerGone, ApiError, TransportError.
    """
    return _delete(ctx, component, cached, "Orphan")


def _delete(
    ctx: ClusterContext, component: str, cached: Object, propagation: Literal["Orphan", "Foreground"]
) -> Waiting:
    seen = Destroyer(ctx.deps.client).observe(STATEFUL_SETS, cached.metadata.name, ctx.namespace)
    wanted = spec_confirmed(ctx) if seen and _is_unchanged(seen.object, cached) else None
    if seen is None or wanted is None:
        return Waiting(
            "CacheOutdated", f"waiting for the cache to show the current StatefulSet and {ctx.tc.kind}", _RETRY
        )
    in_use = in_use_config_map_name(ctx.tc, component, seen.object.decode())
    annotate_owner(ctx, {config_map_before_delete(component): in_use})
    delete(ctx, seen, wanted, propagation=propagation)
    record_deletion(ctx, STATEFUL_SETS, cached.metadata.name)
    stay = propagation == "Orphan" and cached.decode()["spec"].get("replicas", 1)
    pods = "; its pods keep running" if stay else ""
    what = f"recreating StatefulSet {cached.metadata.name} for its new volumes{pods}"
    return Waiting(RECREATING, what, _RETRY)
