"""The fields and annotations of a TidbCluster without a counterpart in TiDB Operator v2, and what to do instead."""

import re
from collections.abc import Iterator, Mapping, Sequence

from cli.tidb.export_v2.groups import GROUPS
from kube.objects import Json

_OF_PODS = (
    *("version", "schedulerName", "imagePullSecrets", "imagePullPolicy", "configUpdateStrategy", "hostNetwork"),
    *("affinity", "priorityClassName", "nodeSelector", "annotations", "labels", "tolerations", "dnsConfig"),
    *("dnsPolicy", "podSecurityContext", "topologySpreadConstraints", "serviceAccount"),
)
_CARRIED_BY_CLUSTER = (*_OF_PODS, "tlsCluster.enabled", "suspendAction.suspendStatefulSet", "paused")
_CARRIED = (
    *_OF_PODS,
    *("replicas", "baseImage", "image", "requests", "limits", "config", "env", "envFrom", "initContainers"),
    *("additionalContainers", "additionalVolumes", "additionalVolumeMounts", "terminationGracePeriodSeconds"),
    *("securityContext", "automountServiceAccountToken", "storageClassName", "volumeAttributesClassName"),
    *("storageVolumes", "storageClaims", "dataSubDir", "serverLabels", "lifecycle", "tlsClient.enabled"),
    "bootstrapSQLConfigMapName",
)
"""The fields of a component that `groups` reads, and above it the fields of a cluster."""

_NOTES: Sequence[tuple[str, str]] = (
    (r"pump", "v2 has no Pump; replicate with TiCDC"),
    (r"pdms", "write a TSOGroup and a SchedulingGroup, and spec.template.spec.mode: ms in the PDGroup"),
    (r"pd\.mode", "write a TSOGroup and a SchedulingGroup, and spec.template.spec.mode: ms in the PDGroup"),
    (r"cluster|acrossK8s|clusterDomain|pdAddresses", "v2 joins no other cluster"),
    (r".*\.service|services", "create a Service that selects the label pingcap.com/group and pingcap.com/component"),
    (r".*\.(maxFailoverCount|recoverFailover|failover)", "v2 replaces no lost member by itself"),
    (r"enablePVReclaim|pvReclaimPolicy", "set the reclaim policy in the StorageClass"),
    (r"enablePVCReplace|.*\.spareVolReplaceReplicas", "v2 replaces a pod to change its volumes"),
    (r".*\.storeLabels", "v2 copies the labels region, zone and host of nodes"),
    (r".*\.readinessProbe", "set spec.template.spec.probes where the group has it, or overlay the container's probe"),
    (
        r".*\.(evictLeaderTimeout|waitLeaderTransferBackTimeout|gracefulShutdownTimeout)",
        "set a grace period of the pod",
    ),
    (r".*\.scalePolicy|.*podManagementPolicy", "v2 scales one group's instances one after another"),
    (r".*\.(logTailer|slowLogTailer|separate.*|.*LogVolumeName)", "v2 has its own sidecars, for TiDB and TiFlash"),
    (r"tidb\.initializer", "set the password with a bootstrap SQL"),
    (r"helper", "name the image in each group's template"),
    (r"startScript.*|discovery|enableDynamicConfiguration|.*statefulSetUpdateStrategy", "it is about v1's operator"),
    (r"tiproxy\.configUpdateStrategy", "v1 ignores it, too"),
    (r"timezone", "set TZ by an overlay, and time_zone by SQL"),
)

_ANNOTATIONS: Sequence[tuple[str, str]] = (
    (r".*-overlay", "write it into spec.template.spec.overlay of the group"),
    (r".*/delete-slots", "v2's instances have no ordinals"),
    (r".*/graceful-stop", "v2 adds a hook of its own"),
    (r".*", "it is about v1's operator"),
)
"""Notes on the annotations of the domain pingcap.com, by pattern."""


def without_counterpart(cluster: Json) -> Iterator[tuple[str, str]]:
    """The path of each set field that no manifest carries, with what to do instead, in the order of the spec.

    The annotations for the operator follow.
    """
    yield from _fields_without_counterpart(cluster["spec"])
    for key in cluster["metadata"].get("annotations") or ():
        if key.partition("/")[0].endswith("pingcap.com"):
            note = next(note for pattern, note in _ANNOTATIONS if re.fullmatch(pattern, key))
            yield f'metadata.annotations["{key}"]', note


def _fields_without_counterpart(spec: Json) -> Iterator[tuple[str, str]]:
    components = {group.name for group in GROUPS}
    for name, value in spec.items():
        is_component = name in components and isinstance(value, Mapping)
        fields = value if is_component else {name: value}
        carried: Sequence[str] = _CARRIED if is_component else _CARRIED_BY_CLUSTER
        if name == "tiproxy":
            carried = tuple(field for field in carried if field != "configUpdateStrategy")
        for path in _unknown(fields, carried):
            full = f"{name}.{path}" if is_component else path
            yield f"spec.{full}", _note(full)


def _unknown(tree: Mapping[str, object], carried: Sequence[str], prefix: str = "") -> Iterator[str]:
    """The paths of set values that are not `carried`; empty values set nothing.

    A part of which nothing is carried is one path.
    """
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if path in carried or value is None or value in ("", [], {}):
            continue
        if isinstance(value, Mapping) and any(field.startswith(f"{path}.") for field in carried):
            yield from _unknown(value, carried, f"{path}.")
        else:
            yield path


def _note(path: str) -> str:
    return next(
        (note for pattern, note in _NOTES if re.fullmatch(rf"({pattern})(\..*)?", path)), "v2 has no such field"
    )
