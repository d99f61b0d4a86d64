"""Rules of TidbInitializer, TidbDashboard and TidbNGMonitoring (other-resources.md 2, 4, 5)."""

from collections.abc import Iterator, Mapping, Sequence

from apis.config import tables
from apis.config_schema import NONE
from apis.dashboards import TidbDashboard
from apis.initializers import TidbInitializer
from apis.ng_monitorings import TidbNGMonitoring
from apis.problem import InvalidField, Problem
from apis.shared import PodSettings, Quantity, StorageVolume, TidbClusterRef
from apis.validation import containers, pods
from ports import quantity

_SUFFIX = "-tidb-initializer"


def validate_initializer(initializer: TidbInitializer) -> list[Problem]:
    """Everything that is wrong with a TidbInitializer. v1.6 has no such rules."""
    spec, meta = initializer.spec, initializer.metadata
    problems = list(_check_cluster(spec.cluster, meta.namespace))
    if len(meta.name) > _LONGEST_LABEL:
        message = f"must have {_LONGEST_LABEL} characters at most, since it becomes a label"
        problems.append(Problem("metadata.name", meta.name, message))
    if not spec.image:
        message = "is required; name an image that has python with MySQLdb, sh and nc, such as tnir/mysqlclient"
        problems.append(Problem("spec.image", spec.image, message))
    return problems


def _check_cluster(reference: TidbClusterRef, own: str) -> Iterator[Problem]:
    if not reference.name:
        yield Problem("spec.cluster.name", reference.name, "is required; name the TidbCluster")
    elif len(reference.name) > (longest := _LONGEST_LABEL - len(_SUFFIX)):
        message = f"must have {longest} characters at most, since <name>{_SUFFIX} becomes a label of the Job's pod"
        yield Problem("spec.cluster.name", reference.name, message)
    if reference.namespace not in ("", own):
        message = (
            f"must be the namespace of the TidbInitializer, {own}: its Job runs beside the cluster; create it there"
        )
        yield Problem("spec.cluster.namespace", reference.namespace, message)


_LONGEST_LABEL = 63
_POLICIES = ("Retain", "Delete", "Recycle")


def validate_dashboard(dashboard: TidbDashboard) -> list[Problem]:
    """Everything that is wrong with a TidbDashboard."""
    spec = dashboard.spec
    problems = [
        *_check_name(dashboard.metadata.name, "-tidb-dashboard-exposed"),
        *_check_clusters(spec.clusters),
        *_check_policy(spec.pv_reclaim_policy),
        *_check_storage(spec.requests, spec.storage_volumes, "spec"),
        *_check_pod(spec, "spec"),
        *pods.check_labels(spec.service.labels, "spec.service.labels"),
    ]
    if not spec.base_image and not spec.image:
        problems.append(Problem("spec.baseImage", "", "is required; name an image such as pingcap/tidb-dashboard"))
    return problems


def validate_ng_monitoring(monitoring: TidbNGMonitoring) -> list[Problem]:
    """Everything that is wrong with a TidbNGMonitoring."""
    spec, own = monitoring.spec, monitoring.spec.ng_monitoring
    problems = [
        *_check_name(monitoring.metadata.name, "-ng-monitoring"),
        *_check_clusters(spec.clusters),
        *_check_policy(spec.pv_reclaim_policy),
        *_check_storage(own.requests, own.storage_volumes, "spec.ngMonitoring"),
        *_check_pod(spec, "spec"),
        *_check_pod(own, "spec.ngMonitoring"),
        *_check_config(monitoring),
    ]
    if not own.base_image and not own.image and not spec.image:
        message = "is required; name an image such as pingcap/ng-monitoring"
        problems.append(Problem("spec.ngMonitoring.baseImage", "", message))
    return problems


def _check_pod(spec: PodSettings, field: str) -> Iterator[Problem]:
    yield from pods.check_settings(spec, field)
    yield from containers.check_variables(spec.env, f"{field}.env")


def _check_name(name: str, suffix: str) -> Iterator[Problem]:
    if len(name) > (longest := _LONGEST_LABEL - len(suffix)):
        message = f"must have {longest} characters at most, since <name>{suffix} names a Service or a pod"
        yield Problem("metadata.name", name, message)


def _check_clusters(clusters: Sequence[TidbClusterRef]) -> Iterator[Problem]:
    if len(clusters) != 1:
        yield Problem(
            "spec.clusters", [cluster.name for cluster in clusters], "must name one TidbCluster, neither none nor more"
        )
    elif not clusters[0].name:
        yield Problem("spec.clusters[0].name", "", "is required; name the TidbCluster")


def _check_policy(policy: str | None) -> Iterator[Problem]:
    if policy not in (None, "", *_POLICIES):
        yield Problem("spec.pvReclaimPolicy", policy, f"must be one of {', '.join(_POLICIES)}")


def _check_storage(requests: Mapping[str, Quantity], more: Sequence[StorageVolume], field: str) -> Iterator[Problem]:
    size = requests.get("storage")
    if size is None:
        yield Problem(f"{field}.requests.storage", None, "is required; give the size of the data volume, such as 10Gi")
    sizes = {f"{field}.requests.storage": size}
    sizes |= {f"{field}.storageVolumes[{index}].storageSize": each.storage_size for index, each in enumerate(more)}
    for path, value in sizes.items():
        if value is not None and not _is_of_a_volume(value):
            yield Problem(path, value, "must be a quantity above 0 and below 8Ei, such as 10Gi")


def _is_of_a_volume(value: Quantity) -> bool:
    try:
        return 0 < quantity.parse(value) <= quantity.LARGEST
    except ValueError:
        return False


def _check_config(monitoring: TidbNGMonitoring) -> Iterator[Problem]:
    try:
        found = tables(monitoring.spec.ng_monitoring.config, NONE, "spec.ngMonitoring.config")
    except InvalidField as error:
        yield error.problem
        return
    if not isinstance(found.get("security", {}), dict):
        yield Problem("spec.ngMonitoring.config.security", found["security"], "must be a table")
