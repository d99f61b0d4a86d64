"""StatefulSets: the shell around a pod template (objects.md 3.8)."""

from collections.abc import Collection, Sequence

import msgspec

from apis.accessor import Component
from apis.ordinals import OrdinalSet, desired_ordinals, parse_slots, slots_annotation
from apis.overlays import Overlay, overlay_of
from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, STATEFUL_SETS
from member import labels
from member.naming import member_name, peer_service

ON_DELETE = "OnDelete"
"""The update strategy with which a StatefulSet restarts no pod."""

_SLOTS = labels.DELETE_SLOTS


def stateful_set(
    component: Component,
    *,
    template: Json,
    claims: Sequence[Json],
) -> Json:
    """The StatefulSet of a component, with its overlay. Raises InvalidField for one that validation rejects.

    Its partition is above all pods: Kubernetes rolls no pod until the upgrade lowers the partition. The annotation with
    ordinals to skip is copied but, without AdvancedStatefulSet, has no effect (lifecycle.md 4.4 BETTER).
    """
    tc, name = component.tc, component.name
    if overlay := overlay_of(component):
        template, claims = _with_pod_fields(template, overlay), [_with_claim_fields(each, overlay) for each in claims]
    pods = desired_ordinals(tc, name)
    selector = labels.base_labels(tc, name)
    slots = tc.metadata.annotations.get(slots_annotation(name))
    annotations = {} if slots is None or not component.type.has_delete_slots else {labels.DELETE_SLOTS: slots}
    spec: Json = {
        "replicas": pods.replicas,
        "selector": {"matchLabels": selector},
        "serviceName": peer_service(tc, name),
        "podManagementPolicy": component.pod_management_policy,
        "updateStrategy": _update_strategy(component, pods),
        "template": template,
    }
    if claims:
        spec["volumeClaimTemplates"] = list(claims)
    return {
        "apiVersion": (ADVANCED_STATEFUL_SETS if tc.metadata.counts_slots else STATEFUL_SETS).api_version,
        "kind": "StatefulSet",
        "metadata": labels.object_meta(tc, member_name(tc, name), selector, annotations),
        "spec": spec,
    }


def _with_pod_fields(template: Json, overlay: Overlay) -> Json:
    return template | {"spec": template["spec"] | overlay.template.spec}


def _with_claim_fields(claim: Json, overlay: Overlay) -> Json:
    for added in overlay.volume_claim_templates:
        if added.metadata["name"] == claim["metadata"]["name"]:
            claim = claim | {"metadata": claim["metadata"] | added.metadata, "spec": claim["spec"] | added.spec}
    return claim


def _update_strategy(component: Component, pods: OrdinalSet) -> Json:
    if component.stateful_set_update_strategy == ON_DELETE:
        return {"type": ON_DELETE}
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": pods.bound}}


def is_rolling(live: Json) -> bool:
    """True if the newest revision of the StatefulSet is not the current one, i.e. its last roll is not complete."""
    status = live.get("status") or {}
    return bool(status.get("updateRevision")) and status.get("currentRevision") != status["updateRevision"]


def lowest_restarted(body: Json, strategy: Json | None = None) -> int:
    """The lowest ordinal from which the StatefulSet controller restarts outdated pods; above all pods if it does not.

    `strategy` replaces the update strategy of the StatefulSet.
    """
    bound, given = ordinals_of(body).bound, strategy or body["spec"]["updateStrategy"]
    if given.get("type") == ON_DELETE:
        return bound
    return min(int((given.get("rollingUpdate") or {}).get("partition", 0)), bound)


def ordinals_of(body: Json) -> OrdinalSet:
    """The pods that a StatefulSet should have. Only an Advanced one has slots; unreadable ones are none (4.4)."""
    replicas: int = body["spec"]["replicas"]
    text = (body["metadata"].get("annotations") or {}).get(_SLOTS)
    if text is None or not is_advanced(body):
        return OrdinalSet(replicas)
    try:
        return OrdinalSet(replicas, parse_slots(text))
    except ValueError:
        return OrdinalSet(replicas)


def with_slots(body: Json, slots: Collection[int]) -> Json:
    """An Advanced StatefulSet with these slots; a native one as it is.

    Having none is written, too: slots that another operator or a user has written would stay, and with them one more
    replica would start a pod above all others instead of the one left out.
    """
    if not is_advanced(body):
        return body
    annotations = (body["metadata"].get("annotations") or {}) | {_SLOTS: msgspec.json.encode(sorted(slots)).decode()}
    return body | {"metadata": body["metadata"] | {"annotations": annotations}}


def is_advanced(body: Json) -> bool:
    """True for an Advanced StatefulSet."""
    return bool(body.get("apiVersion") == ADVANCED_STATEFUL_SETS.api_version)
