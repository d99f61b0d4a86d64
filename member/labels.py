"""Labels and annotations: all keys, and the objects that carry them (objects.md 1.2, 13)."""

from collections.abc import Mapping

from apis.cluster import Cluster
from apis.components import component_type
from apis.data_volumes import CLUSTER_ID_LABEL, COMPONENT_LABEL, DEFER_DELETING, MEMBER_ID_LABEL, POD_NAME_LABEL
from apis.identity import INSTANCE_LABEL, instance_name
from kube.objects import MANAGED_BY_LABEL, Json

# Labels (objects.md 13.1)
NAME = "app.kubernetes.io/name"
MANAGED_BY = MANAGED_BY_LABEL
INSTANCE = INSTANCE_LABEL
COMPONENT = COMPONENT_LABEL
USED_BY = "app.kubernetes.io/used-by"
NAMESPACE = "app.kubernetes.io/namespace"
CLUSTER_ID = CLUSTER_ID_LABEL
MEMBER_ID = MEMBER_ID_LABEL
STORE_ID = "tidb.pingcap.com/store-id"
POD_NAME = POD_NAME_LABEL
CONTROLLER_REVISION_HASH = "controller-revision-hash"
STATEFUL_SET_POD_NAME = "statefulset.kubernetes.io/pod-name"

TIDB_CLUSTER = "tidb-cluster"
TIDB_OPERATOR = "tidb-operator"
END_USER = "end-user"
PEER = "peer"

# Annotations of the TidbCluster (objects.md 13.2)
FORCE_UPGRADE = "tidb.pingcap.com/force-upgrade"
PD_CHECK_QUORUM_BEFORE_UPGRADE = "tidb.pingcap.com/pd-check-quorum-before-upgrade"
TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE = "tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade"
TIKV_WAIT_FOR_REGION_QUORUM = "tidb.pingcap.com/tikv-wait-for-region-quorum"
"""The longest wait for regions whose quorum needs the TiKV that restarts next, e.g. `1h`; 10 minutes by default. Not
known to v1.6.
"""
TIKV_RESTART_WITHOUT_FLUSH_LOG_BACKUP = "tidb.pingcap.com/tikv-restart-without-flush-log-backup"
TIFLASH_710_KEEP_PORTS = "tidb.pingcap.com/tiflash-710-keep-ports"
RESTORING_TO_POINT_IN_TIME = "tidb.pingcap.com/restoring-to-point-in-time"
"""Set in memory while a Restore needs TiKV to keep its garbage (`member.observed.restores`). Not known to v1.6."""
TIDB_SCALE_SELECTOR = "tidb.pingcap.com/tidb-scale-selector"
"""`true` shows the selector of TiDB's pods in the status, which a HorizontalPodAutoscaler needs. Not known to v1.6."""
TIKV_VOLUMES_READY = "tidb.pingcap.com/tikv-volumes-ready"
SMOOTH_UPGRADE_DDL_PAUSED = "tidb.pingcap.com/smooth-upgrade-ddl-paused"
SMOOTH_UPGRADE_SOURCE_VERSION = "tidb.pingcap.com/smooth-upgrade-source-version"
SMOOTH_UPGRADE_TARGET_VERSION = "tidb.pingcap.com/smooth-upgrade-target-version"
SMOOTH_UPGRADE_STARTED_AT = "tidb.pingcap.com/smooth-upgrade-started-at"
AUTO_FAILURE_RECOVERY = "app.kubernetes.io/auto-failure-recovery"
CLEAR_FAILURE_RECORDS = "tidb.pingcap.com/clear-failure-records"
"""The user's command to drop the failure records of the component that it names. Not known to v1.6."""

# Annotations of pods that say when a command ends (lifecycle.md 13); `apis.pod_commands` has the commands
TIKV_EVICT_LEADER_EXPIRATION_TIME = "tidb.pingcap.com/tikv-evict-leader-expiration-time"
PD_EVICT_LEADER_EXPIRATION_TIME = "tidb.pingcap.com/pd-evict-leader-expiration-time"

# Annotations of pods, StatefulSets, Services, Deployments (objects.md 13.3)
LAST_APPLIED = "pingcap.com/last-applied-configuration"
LAST_APPLIED_POD_TEMPLATE = "pingcap.com/last-applied-podtemplate"
DELETE_SLOTS = "delete-slots"
OWNER_GENERATION = "tidb.pingcap.com/owner-generation"
SYNC_TIMESTAMP = "tidb.pingcap.com/sync-timestamp"
PROMETHEUS_SCRAPE = "prometheus.io/scrape"
PROMETHEUS_PATH = "prometheus.io/path"
PROMETHEUS_PORT = "prometheus.io/port"
TIFLASH_PROXY_PORT = "tiflash.proxy.prometheus.io/port"
TIFLASH_MOUNT_CONFIG_MAP = "tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container"
SYSCTL_INIT = "tidb.pingcap.com/sysctl-init"
RESTARTED_AT = "tidb.pingcap.com/restartedAt"
RESTART_PRIORITY = "tidb.pingcap.com/restart-priority"
"""On a pod: an integer; pods with a higher one restart earlier in a roll (`member.lifecycle.roll_steps`). Not known to
v1.6.
"""
SCALE_IN_TIME = "tidb.pingcap.com/scale-in-time"
PVC_DEFER_DELETING = DEFER_DELETING
POD_SCHEDULING = "tidb.pingcap.com/pod-scheduling"
EVICT_LEADER_BEGIN_TIME = "evictLeaderBeginTime"
TIKV_EVICT_LEADER_END_AT = "tidb.pingcap.com/tikv-evict-leader-end-at"
TIKV_NO_ACTIVE_STORE_SINCE = "tidb.pingcap.com/tikv-no-active-store-since"
START_SCRIPT_OPTIONS = "tidb.pingcap.com/start-script-options"
"""The user's choices that affect a start script. Not known to v1.6.

It is on the ConfigMap with the script (`member.objects.config_map`). If the script is a command, it is on the
StatefulSet of an NG Monitoring (`controllers.owned_workloads`).
"""

WRITTEN_FOR = "tidb.pingcap.com/written-for"
"""On a StatefulSet: the cluster that its template is for (`member.lifecycle.own_changes`). Not known to v1.6."""
WRITTEN_GENERATION = "tidb.pingcap.com/written-generation"
"""On a StatefulSet: `UID/generation` after the last write (`member.apply.foreign_edits`). Not known to v1.6."""
ADMITTED_TEMPLATE = "tidb.pingcap.com/admitted-template"
"""On a StatefulSet: the digest of a pod template that admission has changed (`member.apply.foreign_edits`)."""
REQUEUED_AT = "tidb.pingcap.com/requeued-at"
"""On a StatefulSet: when a write woke its controller (`member.lifecycle.serving`). Not known to v1.6."""

# Annotations of volume claims: the change in progress, and the result of the last one (objects.md 13.3)
SPEC_REVISION = "spec.tidb.pingcap.com/revision"
SPEC_STORAGE_CLASS = "spec.tidb.pingcap.com/storage-class"
SPEC_STORAGE_SIZE = "spec.tidb.pingcap.com/storage-size"
STATUS_REVISION = "status.tidb.pingcap.com/revision"
STATUS_STORAGE_CLASS = "status.tidb.pingcap.com/storage-class"
STATUS_STORAGE_SIZE = "status.tidb.pingcap.com/storage-size"
STATUS_LAST_TRANSITION = "status.tidb.pingcap.com/last-transition-timestamp"


def min_ready_seconds(component: str) -> str:
    """The TidbCluster's annotation with the seconds that a pod must be Ready before the next is restarted (14)."""
    domain = "tiproxy" if component == "tiproxy" else "tidb"
    return f"{domain}.pingcap.com/{component}-min-ready-seconds"


def partition(component: str) -> str:
    """The TidbCluster's annotation that keeps the pods below an ordinal on their revision (14)."""
    return f"tidb.pingcap.com/{component}-partition"


def config_map_before_delete(component: str) -> str:
    """The TidbCluster's annotation with the name of a ConfigMap while its StatefulSet is recreated (6.5)."""
    return f"tidb.pingcap.com/configmap-name-before-delete-{component}"


def cluster_labels(tc: Cluster) -> dict[str, str]:
    """The three labels of all objects of a cluster (objects.md 1.2)."""
    return {NAME: tc.LABELLED_NAME, MANAGED_BY: TIDB_OPERATOR, INSTANCE: instance_name(tc)}


def base_labels(tc: Cluster, component: str) -> dict[str, str]:
    """The four labels of all objects of a component; they are also its selector (objects.md 1.2)."""
    row = component_type(component)
    return {
        NAME: tc.LABELLED_NAME,
        MANAGED_BY: TIDB_OPERATOR,
        INSTANCE: instance_name(tc) + row.instance_suffix,
        COMPONENT: row.label,
    }


def selector_text(carried: Mapping[str, str]) -> str:
    """Labels in the form of a label selector query."""
    return ",".join(f"{key}={value}" for key, value in carried.items())


def with_annotation(obj: Json, key: str, value: str) -> Json:
    """A copy of `obj` with this annotation."""
    metadata = obj["metadata"]
    annotations = {**metadata.get("annotations", {}), key: value}
    return obj | {"metadata": metadata | {"annotations": annotations}}


def owner_reference(tc: Cluster) -> Json:
    """The owner reference that makes the cluster the controller of an object."""
    return {
        "apiVersion": tc.api_version,
        "kind": tc.kind,
        "name": tc.metadata.name,
        "uid": tc.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def object_meta(
    tc: Cluster,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """The metadata of an object that the cluster owns; has no key `annotations` if there are none."""
    metadata: Json = {
        "name": name,
        "namespace": tc.metadata.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner_reference(tc)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata
