"""StatefulSets: the shell around a pod template (objects.md 3.8)."""

from collections.abc import Sequence

from apis.accessor import Component
from apis.ordinals import desired_replicas, slots_annotation
from kube.objects import Json
from member import labels
from member.naming import member_name, peer_service

ON_DELETE = "OnDelete"
"""The update strategy with which a StatefulSet restarts no pod."""


def stateful_set(
    component: Component,
    *,
    template: Json,
    claims: Sequence[Json],
) -> Json:
    """The StatefulSet of a component.

    Its partition equals its replicas: Kubernetes rolls no pod until the upgrade lowers the partition. The annotation
    with ordinals to skip is copied but, without AdvancedStatefulSet, has no effect (lifecycle.md 4.4 BETTER).
    """
    tc = component.tc
    replicas = desired_replicas(tc, component.name)
    selector = labels.base_labels(tc, component.name)
    slots = tc.metadata.annotations.get(slots_annotation(component.name))
    annotations = {} if slots is None or not component.type.has_delete_slots else {labels.DELETE_SLOTS: slots}
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": selector},
        "serviceName": peer_service(tc, component.name),
        "podManagementPolicy": component.pod_management_policy,
        "updateStrategy": _update_strategy(component, replicas),
        "template": template,
    }
    if claims:
        spec["volumeClaimTemplates"] = list(claims)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": labels.object_meta(tc, member_name(tc, component.name), selector, annotations),
        "spec": spec,
    }


def _update_strategy(component: Component, replicas: int) -> Json:
    if component.stateful_set_update_strategy == ON_DELETE:
        return {"type": ON_DELETE}
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": replicas}}


def is_rolling(live: Json) -> bool:
    """True if the newest revision of the StatefulSet is not the current one, i.e. its last roll is not complete."""
    status = live.get("status") or {}
    return bool(status.get("updateRevision")) and status.get("currentRevision") != status["updateRevision"]


def lowest_restarted(strategy: Json, replicas: int) -> int:
    """The lowest ordinal that the StatefulSet controller restarts if it is outdated; `replicas` if it restarts none."""
    if strategy.get("type") == ON_DELETE:
        return replicas
    return min(int((strategy.get("rollingUpdate") or {}).get("partition", 0)), replicas)
