"""A StatefulSet with one pod, as TidbDashboard and TidbNGMonitoring have it.

The user's settings are one ComponentSpec; `levelled` combines two levels into one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from apis import images
from apis.accessor import container_resources
from apis.shared import ComponentSpec, PodSettings, StorageVolume, TopologySpreadConstraint
from kube.objects import Json
from member import labels
from member.objects.pod import container_port, with_additional_containers, without_unset
from member.objects.volumes import (
    TOKEN_MOUNT,
    claim_template,
    mount,
    storage_volume_mounts,
    storage_volume_name,
    token_volume,
)

_MERGED = ("node_selector", "labels", "annotations")
"""The fields that are merged by key, the lower level last. All other fields override as a whole (objects.md 3.3)."""


def levelled(upper: PodSettings, own: ComponentSpec) -> ComponentSpec:
    """Two levels combined into one: the values of `own`; where they are unset, the values of `upper`."""
    above, below = structs.asdict(upper), structs.asdict(own)
    unset = {name: above[name] for name in PodSettings.__struct_fields__ if below[name] in (None, "", [])}
    merged = {name: above[name] | below[name] for name in _MERGED}
    values = below | unset | merged
    return ComponentSpec(**{name: values[name] for name in ComponentSpec.__struct_fields__})


def resource_labels(name: str, instance: str, component: str) -> dict[str, str]:
    """The four labels of all objects of a resource, which are also the selector."""
    return {
        labels.NAME: name,
        labels.MANAGED_BY: labels.TIDB_OPERATOR,
        labels.INSTANCE: instance,
        labels.COMPONENT: component,
    }


def image_of(spec: ComponentSpec, base_image: str) -> str:
    """The image: without a base image the image of `spec`, otherwise the base image with the version as its tag."""
    return images.with_version(base_image, spec.version or "") if base_image else spec.image


@dataclass(frozen=True, kw_only=True)
class Server:
    """The server in the pod: the name of container and port, the port, and the settings of the container."""

    name: str
    port: int
    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Sequence[Json] = ()
    mounts: Sequence[Json] = ()
    volumes: Sequence[Json] = ()
    claims: Sequence[Json] = ()


def stateful_set(spec: ComponentSpec, server: Server, name: str, service: str, selector: Mapping[str, str]) -> Json:
    """The StatefulSet with one pod."""
    body: Json = {
        "replicas": 1,
        "selector": {"matchLabels": dict(selector)},
        "serviceName": service,
        "podManagementPolicy": "OrderedReady" if spec.pod_management_policy == "OrderedReady" else "Parallel",
        "updateStrategy": {"type": spec.stateful_set_update_strategy or "RollingUpdate"},
        "template": _template(spec, server, selector),
        "volumeClaimTemplates": list(server.claims),
    }
    return {"metadata": {"name": name, "labels": dict(selector)}, "spec": body}


def claims(
    component: str, data: str, spec: ComponentSpec, storage_class: str | None, more: Sequence[StorageVolume]
) -> list[Json]:
    """The claim templates: one for data, with the requested storage size, and one for each of storageVolumes."""
    return [
        claim_template(data, spec.requests.get("storage"), storage_class),
        *(
            claim_template(
                storage_volume_name(component, volume.name),
                volume.storage_size,
                storage_class if volume.storage_class_name is None else volume.storage_class_name,
                volume.volume_attributes_class_name,
            )
            for volume in more
        ),
    ]


def data_mounts(component: str, data: str, path: str, more: Sequence[StorageVolume]) -> list[Json]:
    """The mounts of the claims."""
    return [mount(data, path), *storage_volume_mounts(component, more)]


def _template(spec: ComponentSpec, server: Server, selector: Mapping[str, str]) -> Json:
    is_denied = spec.automount_service_account_token is False
    own_volumes = [*server.volumes, *([token_volume()] if is_denied else []), *spec.additional_volumes]
    container = _container(spec, server, [TOKEN_MOUNT] if is_denied else [])
    pod = without_unset(
        {
            "initContainers": spec.init_containers,
            "containers": with_additional_containers([container], spec.additional_containers),
            "volumes": own_volumes,
            "schedulerName": spec.scheduler_name,
            "affinity": spec.affinity,
            "nodeSelector": spec.node_selector,
            "hostNetwork": spec.host_network or None,
            "tolerations": spec.tolerations,
            "securityContext": spec.pod_security_context,
            "topologySpreadConstraints": [
                _spread(topology_spread_constraint, selector)
                for topology_spread_constraint in spec.topology_spread_constraints
            ],
            "dnsPolicy": spec.dns_policy or ("ClusterFirstWithHostNet" if spec.host_network else "ClusterFirst"),
            "dnsConfig": spec.dns_config,
            "automountServiceAccountToken": spec.automount_service_account_token,
            "priorityClassName": spec.priority_class_name,
            "imagePullSecrets": spec.image_pull_secrets,
            "terminationGracePeriodSeconds": spec.termination_grace_period_seconds,
            "restartPolicy": "Always",
        }
    )
    metadata = without_unset({"labels": {**spec.labels, **selector}, "annotations": spec.annotations})
    return {"metadata": metadata, "spec": pod}


def _container(spec: ComponentSpec, server: Server, token: Sequence[Json]) -> Json:
    reserved = {each["name"] for each in server.env}
    return without_unset(
        {
            "name": server.name,
            "image": server.image,
            "imagePullPolicy": spec.image_pull_policy,
            "command": list(server.command),
            "args": list(server.args),
            "ports": [container_port(server.name, server.port)],
            "env": [*server.env, *(each for each in spec.env if each["name"] not in reserved)],
            "envFrom": spec.env_from,
            "resources": container_resources(spec.requests, spec.limits, spec.claims),
            "volumeMounts": [*server.mounts, *token, *spec.additional_volume_mounts],
            "securityContext": spec.security_context,
        }
    )


def _spread(constraint: TopologySpreadConstraint, selector: Mapping[str, str]) -> Json:
    matched = {key: constraint.match_labels.get(key, value) for key, value in selector.items()}
    return without_unset(
        {
            "maxSkew": max(constraint.max_skew, 1),
            "topologyKey": constraint.topology_key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": matched},
            "minDomains": constraint.min_domains,
            "nodeAffinityPolicy": constraint.node_affinity_policy,
        }
    )
