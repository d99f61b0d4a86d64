"""What a spec leaves open, filled in (defaults-and-validation.md 2.1, 2.4; lifecycle.md 2.1).

In memory only: a status is patched alone, so a default never reaches the user's object. Two defaults are not here.
TiDB's `log.file.max-backups` is in `Component.config_tables`, since filling it in would rewrite the user's text. The
time zone stays as written, since v1.6 leaves `TZ` empty in some pods, and filling it in would roll them at take-over.
"""

from typing import TypeVar

from msgspec import structs

from apis.shared import ScalePolicy, TidbClusterRef, TLSCluster
from apis.tidbcluster import (
    PDSpec,
    TiCDCSpec,
    TidbCluster,
    TidbClusterSpec,
    TiDBServiceSpec,
    TiDBSpec,
    TiFlashSpec,
    TiKVSpec,
    Workload,
)

MAX_FAILOVER_COUNT = 3
START_TIMEOUT = 30
EVICT_LEADER_TIMEOUT = "1500m"
WAIT_LEADER_TRANSFER_BACK_TIMEOUT = "400s"
GRACEFUL_SHUTDOWN_TIMEOUT = "10m"

_T = TypeVar("_T")
_Spec = TypeVar("_Spec", bound=Workload)


def with_defaults(tc: TidbCluster) -> TidbCluster:
    """A cluster whose spec has every default; `tc` stays as it is. Absent components stay absent."""
    spec = tc.spec
    filled = structs.replace(
        spec,
        image_pull_policy=spec.image_pull_policy or "IfNotPresent",
        tls_cluster=_given(spec.tls_cluster, TLSCluster()),
        enable_pv_reclaim=_given(spec.enable_pv_reclaim, False),
        enable_pvc_replace=_given(spec.enable_pvc_replace, False),
        pv_reclaim_policy=spec.pv_reclaim_policy or "Retain",
        start_script_version=spec.start_script_version or "v1",
        cluster=_reference(spec.cluster, tc.metadata.namespace),
        pd=spec.pd and _pd(_with_image(spec.pd, "pingcap/pd", spec)),
        pdms=[
            structs.replace(_with_image(entry, "pingcap/pd", spec), start_timeout=entry.start_timeout or START_TIMEOUT)
            for entry in spec.pdms
        ],
        tikv=spec.tikv and _tikv(_with_image(spec.tikv, "pingcap/tikv", spec)),
        tidb=spec.tidb and _tidb(_with_image(spec.tidb, "pingcap/tidb", spec), pump=spec.pump is not None),
        tiflash=spec.tiflash and _tiflash(_with_image(spec.tiflash, "pingcap/tiflash", spec)),
        ticdc=spec.ticdc and _ticdc(_with_image(spec.ticdc, "pingcap/ticdc", spec)),
        tiproxy=spec.tiproxy and _with_image(spec.tiproxy, "pingcap/tiproxy", spec),
        pump=spec.pump and _with_image(spec.pump, "pingcap/tidb-binlog", spec),
    )
    return structs.replace(tc, spec=filled)


def _given(value: _T | None, default: _T) -> _T:
    return default if value is None else value


def _with_image(component: _Spec, base_image: str, cluster: TidbClusterSpec) -> _Spec:
    """The component with `base_image` when it names none although a version is chosen."""
    versioned = bool(cluster.version) or component.version is not None
    if not versioned or component.base_image:
        return component
    return structs.replace(component, base_image=base_image)


def _reference(reference: TidbClusterRef | None, namespace: str) -> TidbClusterRef | None:
    if reference is None or not reference.name or reference.namespace:
        return reference
    return structs.replace(reference, namespace=namespace)


def _pd(pd: PDSpec) -> PDSpec:
    return structs.replace(
        pd,
        max_failover_count=_given(pd.max_failover_count, MAX_FAILOVER_COUNT),
        spare_vol_replace_replicas=_given(pd.spare_vol_replace_replicas, 1),
        start_timeout=pd.start_timeout or START_TIMEOUT,
    )


def _tikv(tikv: TiKVSpec) -> TiKVSpec:
    return structs.replace(
        tikv,
        max_failover_count=_given(tikv.max_failover_count, MAX_FAILOVER_COUNT),
        spare_vol_replace_replicas=_given(tikv.spare_vol_replace_replicas, 1),
        privileged=_given(tikv.privileged, False),
        separate_rocks_db_log=_given(tikv.separate_rocks_db_log, False),
        separate_raft_log=_given(tikv.separate_raft_log, False),
        evict_leader_timeout=tikv.evict_leader_timeout or EVICT_LEADER_TIMEOUT,
        wait_leader_transfer_back_timeout=tikv.wait_leader_transfer_back_timeout or WAIT_LEADER_TRANSFER_BACK_TIMEOUT,
        scale_policy=_given(tikv.scale_policy, ScalePolicy()),
    )


def _tidb(tidb: TiDBSpec, *, pump: bool) -> TiDBSpec:
    return structs.replace(
        tidb,
        max_failover_count=_given(tidb.max_failover_count, MAX_FAILOVER_COUNT),
        separate_slow_log=_given(tidb.separate_slow_log, True),
        binlog_enabled=_given(tidb.binlog_enabled, pump),
        scale_policy=_given(tidb.scale_policy, ScalePolicy()),
        service=tidb.service and _tidb_service(tidb.service),
    )


def _tidb_service(service: TiDBServiceSpec) -> TiDBServiceSpec:
    return structs.replace(
        service,
        expose_status=_given(service.expose_status, True),
        port_name=service.port_name or "mysql-client",
        port=service.port or 4000,
    )


def _tiflash(tiflash: TiFlashSpec) -> TiFlashSpec:
    return structs.replace(
        tiflash,
        max_failover_count=_given(tiflash.max_failover_count, MAX_FAILOVER_COUNT),
        privileged=_given(tiflash.privileged, False),
        scale_policy=_given(tiflash.scale_policy, ScalePolicy()),
    )


def _ticdc(ticdc: TiCDCSpec) -> TiCDCSpec:
    return structs.replace(
        ticdc, graceful_shutdown_timeout=ticdc.graceful_shutdown_timeout or GRACEFUL_SHUTDOWN_TIMEOUT
    )
