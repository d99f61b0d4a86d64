"""Reasons of TidbMonitors, TidbInitializers, TidbDashboards and TidbNGMonitorings."""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PODS, NOTHING, Reason

OTHER_RESOURCES: Mapping[str, Reason] = {
    "NoTiDB": Reason(
        "The TidbCluster of a TidbInitializer has no TiDB.",
        "It waits until you add `spec.tidb`.",
        "Add `spec.tidb` to the TidbCluster, or delete the TidbInitializer.",
    ),
    "ReferenceNotAllowed": Reason(
        "The object names one in another namespace, whose owner has not consented, or which does not exist; or a "
        "TidbMonitor is `clusterScoped`, which only the administrator may permit.",
        "It reads nothing of the other namespace and makes nothing that reaches there. What already runs stays, "
        "unless it depends on a consent that has been withdrawn: then the copies are deleted.",
        "Ask the owner to run the command in the message: it sets the annotation "
        "`tidb.pingcap.com/allow-references-from`, a list of namespaces or `*`. Or start the operator with "
        "`-cross-namespace-references=FROM:TO`, which an operator of one namespace needs, as it sees no annotations in "
        "others; see [security.md](../security.md#references-into-other-namespaces).",
    ),
    "ClusterInvalid": Reason(
        "The TidbCluster that is named has a spec that cannot be read.",
        "It waits until that is corrected.",
        "`kubectl describe tc` says what is wrong with it.",
    ),
    "MissingConfigMap": Reason(
        "The ConfigMap of `spec.initSqlConfigMap` does not exist, or has no key `init-sql`.",
        "It looks every ten seconds, and makes no Job before.",
        "Create it, with the SQL under the key `init-sql`.",
    ),
    "Initializing": Reason(
        "The Job of a TidbInitializer runs: it waits until TiDB answers, sets passwords and runs the SQL.",
        "It waits until the Job ends. The wait for TiDB ends after an hour.",
        "`kubectl logs job/<cluster>-tidb-initializer -c wait`, and the same of `-c mysql-client`.",
    ),
    "InitializationFailed": Reason(
        "The Job of a TidbInitializer has failed. The message names the step, the number of the statement, and the "
        "answer of TiDB; not the statement, and not the answer where the statement seems to hold a secret.",
        "Nothing: SQL is not run twice by itself.",
        "Correct what failed, take out of the SQL what is done already, and give the annotation `tidb.pingcap.com/run` "
        "of the TidbInitializer another value: `kubectl annotate ti NAME tidb.pingcap.com/run=2 --overwrite`.",
    ),
    "RunningAgain": Reason(
        "The annotation `tidb.pingcap.com/run` of a TidbInitializer has another value than at its last run.",
        "It deletes the Job of that run, brings the ConfigMap up to date and makes a new Job.",
        NOTHING,
    ),
    "MakingJobAgain": Reason(
        "The pod of a TidbInitializer's Job cannot start, e.g. because its image is missing, and the spec has "
        "changed since.",
        "It deletes the Job, whose pod has run no SQL, and recreates it from the current spec.",
        NOTHING,
    ),
    "SecondInitializer": Reason(
        "Another TidbInitializer has made the Job of this TidbCluster; a cluster has one.",
        "Nothing for this one; it looks again every ten seconds.",
        "Delete this TidbInitializer, or the other one, which deletes its Job.",
    ),
    "PodNotReady": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring does not run yet, or is not Ready.",
        "It waits. Nothing else depends on this pod.",
        LOOK_AT_PODS,
    ),
    "Restarting": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring is being replaced by one of the newest spec.",
        "It waits until the new pod is Ready.",
        NOTHING,
    ),
    "VolumesKept": Reason(
        "All is as the spec wants it, but for the size or class of a volume: a StatefulSet can't change that.",
        "It serves with the volume that it has.",
        "Put the field back; or enlarge the claim yourself, delete the StatefulSet with `--cascade=orphan`, and the "
        "operator recreates it.",
    ),
    "VolumesFixed": Reason(
        "The spec adds or removes a volume of a pod whose StatefulSet was created with the old volumes: claim "
        "templates "
        "are immutable.",
        "It leaves the pod as it is.",
        "Put `spec.storageVolumes` back, or delete the StatefulSet, and the operator recreates it; claims and their "
        "data stay.",
    ),
}


MONITORS: Mapping[str, Reason] = {
    "ClusterMissing": Reason(
        "A cluster that the object names does not exist, or its spec can't be read; or no cluster has the labels that "
        "a TidbMonitor selects.",
        "A TidbMonitor monitors the other clusters, and keeps what it made before while there is none at all. A Backup "
        "or Restore waits.",
        "Create the cluster, or correct the name: `spec.clusters` or `spec.dm.clusters` of a TidbMonitor, `spec.br` of "
        "a Backup or Restore.",
    ),
    "ReferenceMissing": Reason(
        "A Secret or ConfigMap that the TidbMonitor or a cluster with TLS refers to is not there, or lacks a key.",
        "It looks again every 30 seconds. What it made before stays as it is.",
        "Create what the message names. For a cluster with TLS that is `<cluster>-cluster-client-secret`.",
    ),
    "PodsNotVisible": Reason(
        "The TidbMonitor names a cluster of another namespace and is not clusterScoped, and no binding there names its "
        "ServiceAccount: Prometheus finds no pod of it. v1.6 calls such a monitor Ready.",
        "It makes everything else, and looks again every 30 seconds.",
        "Set `spec.clusterScoped: true`, or create a Role and a RoleBinding in the namespace of the cluster that let "
        "ServiceAccount `<monitor>-monitor` get, list and watch pods.",
    ),
    "NotPermitted": Reason(
        "The spec asks for rights in all namespaces, and this operator manages one namespace only.",
        "It makes everything else; Prometheus finds pods in its own namespace.",
        "Remove `spec.clusterScoped`, or have an operator with `-cluster-scoped=true` manage the monitor.",
    ),
    "Migrating": Reason(
        "The Deployment of an operator before v1.2 makes way for a StatefulSet, and its volume goes over to that.",
        "It deletes the Deployment, then its claim, and has the volume wait for the new claim.",
        NOTHING,
    ),
    "VolumeWouldGo": Reason(
        "The volume of an older Deployment can't be taken over, because it would be deleted with its claim.",
        "It keeps both, and makes no StatefulSet.",
        '`kubectl patch pv NAME -p \'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}\'`, or delete the claim if '
        "you do not need its data.",
    ),
}
