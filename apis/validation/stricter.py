"""Rules that v1.6 does not have, judged by what runs: a value that a StatefulSet already has is no news.

v1.6 writes such values, and they end as a refusal by the API server, as pods that never start, or as a time zone that
silently is UTC. Here the field is named before anything is written.
"""

import zoneinfo
from collections.abc import Iterator, Mapping

from apis import images
from apis.accessor import Component, components, helper_image, workloads
from apis.cluster import Cluster
from apis.component_specs import TiFlashSpec, TiProxySpec
from apis.identity import instance_name
from apis.problem import Problem
from apis.shared import Json, Quantity, WorkloadSpec
from apis.tidbcluster import TidbCluster
from apis.validation import containers, replica_limit
from apis.validation.volumes import WITH_STORAGE_VOLUMES
from ports import quantity

_LONGEST_NAME = 63
_HASH = "-0123456789"
"""The longest suffix that the StatefulSet controller appends to the name in a pod's label."""
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_CONFIG_STRATEGIES = ("InPlace", "RollingUpdate")
_SET_STRATEGIES = ("OnDelete", "RollingUpdate")
_POD_MANAGEMENT = ("OrderedReady", "Parallel")
_CERT_LAYOUTS = ("v1",)
_RECLAIM_POLICIES = ("Retain", "Delete", "Recycle")


def check(tc: Cluster, stateful_sets: Mapping[str, Json]) -> Iterator[Problem]:
    """Problems of a defaulted cluster, given its StatefulSets by component."""
    if not stateful_sets and not tc.status.cluster_id:
        yield from _check_name(tc)
        if not images.is_reference(helper_image(tc)):
            yield Problem("spec.helper.image", helper_image(tc), _NO_IMAGE)
    yield from _one_of(tc.spec.pv_reclaim_policy or "", "spec.pvReclaimPolicy", _RECLAIM_POLICIES)
    if isinstance(tc, TidbCluster):
        yield from _check_helper(tc)
    yield from _check_time_zone(tc, stateful_sets)
    limit = yield from replica_limit.limit_of(tc.metadata.annotations)
    seen, parts = set[str](), components(tc)
    for component in parts:
        live = stateful_sets.get(component.name)
        for problem in (*_check_choices(component, live), *_check_image(component, live)):
            if problem.field not in seen:  # what the cluster says is said to every component
                yield problem
            seen.add(problem.field)
        yield from _check_containers(component, live)
        yield from containers.check_pod(component)
        yield from _check_sizes(component, live)
    for component in parts:
        if isinstance(component.spec, WorkloadSpec):
            yield from _check_replicas(component, stateful_sets.get(component.name), limit)


def reported(tc: Cluster) -> list[tuple[str, object]]:
    """What `check` reads of the status: the replicas of each StatefulSet that it shows, by component."""
    return [(component.name, _reported(component).get("replicas")) for component in workloads(tc)]


def _check_name(tc: Cluster) -> Iterator[Problem]:
    name = tc.metadata.name
    if "." in name:
        message = "has a dot, and no Service can be called after it; create the cluster under a name without dots"
        yield Problem("metadata.name", name, message)
    longest = max((f"{name}-{workload.name}" for workload in workloads(tc)), key=len, default=name)
    excess = len(longest) + len(_HASH) - _LONGEST_NAME
    if excess > 0:
        message = f"is too long for the labels of its pods; create the cluster under a name shorter by {excess}"
        yield Problem("metadata.name", name, message)
    if len(instance_name(tc)) > _LONGEST_NAME:
        message = f"must have at most {_LONGEST_NAME} characters, because labels hold it"
        yield Problem('metadata.labels["app.kubernetes.io/instance"]', instance_name(tc), message)


def _check_helper(tc: TidbCluster) -> Iterator[Problem]:
    """The pull policy of sidecars, which may stand in two places."""
    helper, tailer = tc.spec.helper, tc.spec.tidb.slow_log_tailer if tc.spec.tidb else None
    yield from _one_of((helper and helper.image_pull_policy) or "", "spec.helper.imagePullPolicy", _PULL_POLICIES)
    own = (tailer and tailer.image_pull_policy) or ""
    yield from _one_of(own, "spec.tidb.slowLogTailer.imagePullPolicy", _PULL_POLICIES)


def _check_time_zone(tc: Cluster, stateful_sets: Mapping[str, Json]) -> Iterator[Problem]:
    zone = tc.spec.timezone
    if not zone or _is_time_zone(zone) or any(_runs_in(zone, live) for live in stateful_sets.values()):
        return
    yield Problem("spec.timezone", zone, "is no time zone of the IANA database; write one such as UTC or Asia/Shanghai")


def _is_time_zone(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _runs_in(zone: str, live: Json) -> bool:
    return any({"name": "TZ", "value": zone} in (container.get("env") or ()) for container in _containers(live))


def _check_replicas(component: Component, live: Json | None, limit: int) -> Iterator[Problem]:
    wanted, there = component.workload.replicas, live["spec"].get("replicas", 1) if live else 0
    if wanted > max(limit, there, _reported(component).get("replicas") or 0):
        yield replica_limit.beyond(limit, wanted, f"{component.field}.replicas", component.tc.kind)


def _reported(component: Component) -> Json:
    """The status's data about the StatefulSet, which may be absent for a moment; empty if the status has none."""
    status = component.type.status(component.tc.status)
    return (status.stateful_set if status else None) or {}


def _check_choices(component: Component, live: Json | None) -> Iterator[Problem]:
    """Values of which there are few. What the API server or v1.6 refuses never runs."""
    spec, cluster = component.spec, component.cluster
    known = {
        "imagePullPolicy": (spec.image_pull_policy, cluster.image_pull_policy, _PULL_POLICIES),
        "dnsPolicy": (spec.dns_policy or None, cluster.dns_policy, _DNS_POLICIES),
        "configUpdateStrategy": (spec.config_update_strategy, cluster.config_update_strategy, _CONFIG_STRATEGIES),
    }
    if live is None and not _reported(component):
        own, other = spec.stateful_set_update_strategy or None, cluster.stateful_set_update_strategy
        known["statefulSetUpdateStrategy"] = (own, other, _SET_STRATEGIES)
        own, other = spec.pod_management_policy or None, cluster.pod_management_policy
        known["podManagementPolicy"] = (own, other, _POD_MANAGEMENT)
        if isinstance(spec, TiProxySpec):
            yield from _one_of(spec.cert_layout, f"{component.field}.certLayout", _CERT_LAYOUTS)
    for name, (of_component, of_cluster, choices) in known.items():
        if of_component is not None:
            yield from _one_of(of_component, f"{component.field}.{name}", choices)
        else:
            yield from _one_of(of_cluster, f"spec.{name}", choices)


def _one_of(value: str, field: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if value and value not in known:
        yield Problem(field, value, f"must be one of {', '.join(known)}")


_NO_IMAGE = "is no image reference; write it as registry.example.com/name:tag, in lower case but for the tag"


def _check_image(component: Component, live: Json | None) -> Iterator[Problem]:
    """The version if it is the problem, else the field that names the image."""
    image = component.image
    if not image or images.is_reference(image) or _runs_image(image, live):
        return
    version, base = component.wanted_version, component.workload.base_image
    if component.runs_image_field:
        yield Problem(f"{component.field}.image", image, _NO_IMAGE)
    elif base and version and not images.is_tag(version):
        message = "is no version of an image: letters, digits, `_`, `.` and `-`, at most 128; write one such as v8.5.2"
        yield Problem(component.version_field, version, message)
    else:
        yield Problem(f"{component.field}.baseImage", base, _NO_IMAGE)


def _check_containers(component: Component, live: Json | None) -> Iterator[Problem]:
    for name, entries in (
        ("initContainers", component.spec.init_containers),
        ("additionalContainers", component.spec.additional_containers),
    ):
        for index, container in enumerate(entries):
            field, image = f"{component.field}.{name}[{index}]", container.get("image")
            if image and not (isinstance(image, str) and images.is_reference(image)) and not _runs_image(image, live):
                yield Problem(f"{field}.image", image, _NO_IMAGE)
            yield from _one_of(str(container.get("imagePullPolicy") or ""), f"{field}.imagePullPolicy", _PULL_POLICIES)


def _runs_image(image: object, live: Json | None) -> bool:
    return live is not None and any(container.get("image") == image for container in _containers(live))


def _containers(live: Json) -> list[Json]:
    pod = live["spec"]["template"]["spec"]
    return [*pod["containers"], *(pod.get("initContainers") or ())]


def _check_sizes(component: Component, live: Json | None) -> Iterator[Problem]:
    spec, field = component.spec, component.field
    sizes = {}
    if component.type.data_volume:
        sizes[f"{field}.{component.workload.data_size_path}"] = component.storage_request
    for index, volume in enumerate(spec.storage_volumes if isinstance(spec, WITH_STORAGE_VOLUMES) else ()):
        sizes[f"{field}.storageVolumes[{index}].storageSize"] = volume.storage_size
    for index, claim in enumerate(spec.storage_claims if isinstance(spec, TiFlashSpec) else ()):
        requests = (claim.resources or {}).get("requests") or {}
        sizes[f"{field}.storageClaims[{index}].resources.requests.storage"] = requests.get("storage")
    begun = live is not None or bool(_reported(component))
    for at, size in sizes.items():
        if size is not None and not _claims(size, live):
            yield from _check_size(size, at, shrinks=begun and not component.cluster.enable_pvc_replace)


def _check_size(size: Quantity, field: str, *, shrinks: bool) -> Iterator[Problem]:
    """`shrinks`: a size below a volume's is refused later, when the volumes are compared, and changes nothing."""
    units = quantity.parse(size)
    if units <= 0 and not shrinks:
        yield Problem(field, size, "must be greater than 0; write the size of the volume, such as 100Gi")
    if units > quantity.LARGEST:
        yield Problem(field, size, "is larger than any volume (8Ei); write its size, such as 100Gi")


def _claims(size: Quantity, live: Json | None) -> bool:
    templates = (live["spec"].get("volumeClaimTemplates") or ()) if live else ()
    requests = ((template["spec"].get("resources") or {}).get("requests") or {} for template in templates)
    return any(request.get("storage") == size for request in requests)
