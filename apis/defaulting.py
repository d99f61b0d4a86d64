"""Defaults of a spec (defaults-and-validation.md 2.1, 2.2, 2.4; lifecycle.md 2.1).

In memory only: a status is patched separately, so a default never reaches the user's object. A component's spec fills
in its own defaults (`WorkloadSpec.with_defaults`). Two defaults are elsewhere. TiDB's `log.file.max-backups` is in
`Component.config_tables`, because filling it in would rewrite the user's text. The time zone stays as written, because
v1.6 leaves `TZ` empty in some pods, and filling it in would roll them at take-over.
"""

from typing import TypeVar

from msgspec import structs

from apis.cluster import Cluster, ClusterSpec
from apis.component_specs import given
from apis.components import component_types
from apis.shared import TidbClusterRef, TLSCluster, WorkloadSpec
from apis.tidbcluster import TidbClusterSpec

_Spec = TypeVar("_Spec", bound=WorkloadSpec)
C = TypeVar("C", bound=Cluster)


def with_defaults(cluster: C) -> C:
    """A cluster with every default in its spec; `cluster` is unchanged. Absent components stay absent."""
    spec = cluster.spec
    filled = structs.replace(
        spec,
        image_pull_policy=spec.image_pull_policy or "IfNotPresent",
        tls_cluster=given(spec.tls_cluster, TLSCluster()),
        enable_pv_reclaim=given(spec.enable_pv_reclaim, False),
        pv_reclaim_policy=spec.pv_reclaim_policy or "Retain",
    )
    for row in component_types(cluster.kind):
        own = row.slot.spec(spec)
        if isinstance(own, WorkloadSpec):
            filled = row.replaced(filled, _with_image(own.with_defaults(), row.default_image, spec))
    if isinstance(filled, TidbClusterSpec):
        filled = _of_tidb_cluster(filled, cluster.metadata.namespace)
    return structs.replace(cluster, spec=filled)


def _of_tidb_cluster(spec: TidbClusterSpec, namespace: str) -> TidbClusterSpec:
    filled = structs.replace(
        spec,
        enable_pvc_replace=given(spec.enable_pvc_replace, False),
        start_script_version=spec.start_script_version or "v1",
        cluster=_reference(spec.cluster, namespace),
        tici=spec.tici and spec.tici.with_defaults(),
    )
    if filled.pd is None or filled.pd.mode != "ms":
        # these serve only such a PD (lifecycle.md 6.2)
        filled.pdms = [structs.replace(entry, replicas=0) for entry in filled.pdms]
    if filled.tidb is not None and filled.tidb.binlog_enabled is None:
        filled.tidb = structs.replace(filled.tidb, binlog_enabled=filled.pump is not None)
    return filled


def _with_image(component: _Spec, base_image: str, cluster: ClusterSpec) -> _Spec:
    """The component with `base_image` if it names none although a version is chosen."""
    versioned = bool(cluster.version) or component.version is not None
    if not versioned or component.base_image:
        return component
    return structs.replace(component, base_image=base_image)


def _reference(reference: TidbClusterRef | None, namespace: str) -> TidbClusterRef | None:
    if reference is None or not reference.name or reference.namespace:
        return reference
    return structs.replace(reference, namespace=namespace)
