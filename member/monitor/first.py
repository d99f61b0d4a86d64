"""The first cluster, after which the initializers name rules and dashboards (other-resources.md 3.6).

It comes from the clusters that were found, or from the pods that run.
"""

from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.monitor.inputs import First, Target

TIDB_INITIALIZER = "monitor-initializer"
DM_INITIALIZER = "dm-initializer"


def of_tidb(tc: TidbCluster) -> First:
    """What the initializer needs to know of a TidbCluster."""
    has_binlog = tc.spec.tidb is not None and bool(tc.spec.tidb.binlog_enabled)
    return First(tc.metadata.namespace, tc.metadata.name, tc.spec.timezone or "UTC", str(has_binlog).lower())


def of_dm(cluster: Target) -> First:
    """What the initializer needs to know of a DMCluster."""
    return First(cluster.namespace, cluster.name)


def told_of_tidb(stateful_set: Json) -> First | None:
    """The first TidbCluster in the environment of a StatefulSet's pods; None if they have none."""
    env = _env(stateful_set, TIDB_INITIALIZER)
    namespace, name = env.get("TIDB_CLUSTER_NAMESPACE"), env.get("TIDB_CLUSTER_NAME")
    if not namespace or not name:
        return None
    return First(namespace, name, env.get("TZ", ""), env.get("TIDB_ENABLE_BINLOG", ""))


def told_of_dm(stateful_set: Json) -> First | None:
    """The first DMCluster in the environment of a StatefulSet's pods; None if they have none."""
    env = _env(stateful_set, DM_INITIALIZER)
    namespace, name = env.get("DM_CLUSTER_NAMESPACE"), env.get("DM_CLUSTER_NAME")
    return First(namespace, name) if namespace and name else None


def _env(stateful_set: Json, name: str) -> dict[str, str]:
    containers = stateful_set["spec"]["template"]["spec"].get("initContainers") or ()
    env = next((each.get("env") or () for each in containers if each["name"] == name), ())
    return {each["name"]: str(each.get("value") or "") for each in env}
