"""Admission webhooks as in real clusters: service meshes, policies, registry mirrors, cost labels.

They act on new pods, on workloads, or on all writes. Each is idempotent, however often an object passes.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from sandbox.apiserver.webhooks import Webhook

_WORKLOADS = (STATEFUL_SETS, DEPLOYMENTS)
_ALL = (*_WORKLOADS, PODS, SERVICES, CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS)
_MIRROR = "mirror.example.com/"
_PROXY: Json = {"name": "mesh-proxy", "image": "mesh/proxy:v1", "resources": {"requests": {"cpu": "10m"}}}
_FIRST: Json = {"name": "mesh-init", "image": "mesh/proxy:v1", "command": ["/bin/sh", "-c", "true"]}
_TOLERATION: Json = {"key": "dedicated", "operator": "Exists"}

_OnPod = Callable[[Json], None]
"""Changes a pod or a pod template, which both have `metadata` and `spec`."""


def _of_new_pods(change: _OnPod) -> Webhook:
    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == PODS and old is None:
            change(tree)

    return webhook


def _of_templates(change: _OnPod) -> Webhook:
    def webhook(resource: Resource, tree: Json, _: Json | None) -> None:
        if resource in _WORKLOADS:
            change(tree["spec"]["template"])

    return webhook


def _of_both(change: _OnPod) -> Webhook:
    pods, templates = _of_new_pods(change), _of_templates(change)

    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        pods(resource, tree, old)
        templates(resource, tree, old)

    return webhook


def _of_claim_templates(change: Callable[[Json], None]) -> Webhook:
    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == STATEFUL_SETS and old is None:
            for template in tree["spec"].get("volumeClaimTemplates") or ():
                change(template)

    return webhook


def _containers(pod: Json) -> list[Json]:
    return [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]


def _add(pod: Json, field: str, item: Json, *, in_front: bool = False) -> None:
    there = pod["spec"].get(field) or []
    if item not in there:
        added: Json = msgspec.json.decode(msgspec.json.encode(item))
        pod["spec"][field] = [added, *there] if in_front else [*there, added]


def _annotate(tree: Json, key: str, value: str) -> None:
    meta = tree.setdefault("metadata", {})
    meta["annotations"] = (meta.get("annotations") or {}) | {key: value}


def _label(tree: Json) -> None:
    meta = tree.setdefault("metadata", {})
    meta["labels"] = (meta.get("labels") or {}) | {"example.com/team": "databases"}


def _mesh(pod: Json) -> None:
    _add(pod, "containers", _PROXY, in_front=True)
    _add(pod, "initContainers", _FIRST, in_front=True)
    _annotate(pod, "mesh.example.com/status", "injected")


def _mirror(pod: Json) -> None:
    for container in _containers(pod):
        container["image"] = _MIRROR + container["image"].removeprefix(_MIRROR)


def _variable(pod: Json) -> None:
    for container in _containers(pod):
        there = container.get("env") or []
        if not any(each["name"] == "REGION" for each in there):
            container["env"] = [*there, {"name": "REGION", "value": "north"}]


def _limit(pod: Json) -> None:
    for container in _containers(pod):
        limits = container.setdefault("resources", {}).setdefault("limits", {})
        limits.setdefault("memory", "2Gi")


def _restrict(pod: Json) -> None:
    pod["spec"]["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}} | (
        pod["spec"].get("securityContext") or {}
    )
    for container in _containers(pod):
        container["securityContext"] = {"allowPrivilegeEscalation": False} | (container.get("securityContext") or {})


def _labels(resource: Resource, tree: Json, _: Json | None) -> None:
    if resource in _ALL:
        _label(tree)


def _times(resource: Resource, tree: Json, old: Json | None) -> None:
    """Count the writes in an annotation, as some tools record the last change."""
    if resource in _ALL:
        before = ((old or {}).get("metadata", {}).get("annotations") or {}).get("example.com/writes", "0")
        if old is None or _without_count(tree) != _without_count(old):
            _annotate(tree, "example.com/writes", str(int(before) + 1))


def _without_count(tree: Json) -> tuple[object, ...]:
    meta = tree["metadata"]
    annotations = {**(meta.get("annotations") or {}), "example.com/writes": ""}
    return tree.get("spec"), tree.get("data"), meta.get("labels"), annotations


def _services(resource: Resource, tree: Json, _: Json | None) -> None:
    if resource == SERVICES:
        _annotate(tree, "example.com/load-balancer", "internal")
        for port in tree["spec"].get("ports") or ():
            port.setdefault("appProtocol", "tcp")


def _clusters(resource: Resource, tree: Json, _: Json | None) -> None:
    """Change custom resources as a policy or a deployment tool does."""
    if resource == TIDB_CLUSTERS:
        _label(tree)
        tree["spec"].setdefault("tolerations", [dict(_TOLERATION)])


WEBHOOKS: Mapping[str, Webhook] = MappingProxyType(
    {
        "mesh": _of_new_pods(_mesh),
        "mirror": _of_new_pods(_mirror),
        "mirror-everywhere": _of_both(_mirror),
        "limits": _of_new_pods(_limit),
        "restricted": _of_both(_restrict),
        "variable": _of_templates(_variable),
        "pull-secret": _of_templates(lambda pod: _add(pod, "imagePullSecrets", {"name": "registry"})),
        "toleration": _of_templates(lambda pod: _add(pod, "tolerations", _TOLERATION)),
        "pod-label": _of_templates(_label),
        "storage-class": _of_claim_templates(lambda claim: claim["spec"].setdefault("storageClassName", "standard")),
        "claim-label": _of_claim_templates(_label),
        "labels": _labels,
        "times": _times,
        "services": _services,
        "clusters": _clusters,
    }
)
"""Webhooks by name."""
