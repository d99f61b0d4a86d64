"""Reasons of TidbMonitors, TidbInitializers, TidbDashboards and TidbNGMonitorings."""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PODS, NOTHING, Reason

OTHER_RESOURCES: Mapping[str, Reason] = {
    "NoTiDB": Reason(
        "The TidbCluster of a TidbInitializer has no TiDB.",
        "It waits for `spec.tidb`.",
        "Add `spec.tidb` to the TidbCluster, or delete the TidbInitializer.",
    ),
    "ReferenceNotAllowed": Reason(
        "The object names an object of another namespace, which does not exist or whose owner has not consented. Or a "
        "TidbMonitor is `clusterScoped`, which only the administrator may permit.",
        "It neither reads the other namespace nor creates anything that reaches it. Running objects stay, except "
        "copies that depend on a withdrawn consent: it deletes them.",
        "Ask the owner to run the command in the message. It sets the annotation "
        "`tidb.pingcap.com/allow-references-from`, a list of namespaces or `*`. Or start the operator with "
        "`-cross-namespace-references=FROM:TO`: an operator of one namespace needs the flag, since it reads no "
        "annotations elsewhere; see security.md#references-into-other-namespaces.",
    ),
    "ClusterInvalid": Reason(
        "The spec of the named TidbCluster cannot be read.",
        "It waits for a valid spec.",
        "`kubectl describe tc` shows the mistake.",
    ),
    "MissingConfigMap": Reason(
        "The ConfigMap of `spec.initSqlConfigMap` does not exist, or has no key `init-sql`.",
        "It checks every ten seconds, and creates the Job afterwards.",
        "Create it, with the SQL under the key `init-sql`.",
    ),
    "Initializing": Reason(
        "The Job of a TidbInitializer waits for TiDB, sets passwords and runs the SQL.",
        "It waits for the end of the Job, which waits for TiDB for at most an hour.",
        "`kubectl logs job/<cluster>-tidb-initializer -c wait`, then the same with `-c mysql-client`.",
    ),
    "InitializationFailed": Reason(
        "The Job of a TidbInitializer has failed. The message names the step, the number of the statement, and TiDB's "
        "answer, unless the statement seems to hold a secret. It never shows the statement.",
        "It does not run SQL twice by itself.",
        "Correct the mistake, remove the statements that have run, and give the annotation `tidb.pingcap.com/run` "
        "another value: `kubectl annotate ti NAME tidb.pingcap.com/run=2 --overwrite`.",
    ),
    "RunningAgain": Reason(
        "You have changed the annotation `tidb.pingcap.com/run` of a TidbInitializer since its last run.",
        "It deletes the old Job, updates the ConfigMap and creates a new Job.",
        NOTHING,
    ),
    "MakingJobAgain": Reason(
        "The pod of a TidbInitializer's Job cannot start, e.g. because its image is missing, and you have changed the "
        "spec since.",
        "It deletes the Job, whose pod has run no SQL, and recreates it from the current spec.",
        NOTHING,
    ),
    "SecondInitializer": Reason(
        "Another TidbInitializer has created the Job of this TidbCluster; a cluster has one.",
        "It leaves this one alone, and checks every ten seconds.",
        "Delete this TidbInitializer, or the other one, which deletes its Job.",
    ),
    "PodNotReady": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring is not running or not Ready yet.",
        "It waits. Nothing else depends on this pod.",
        LOOK_AT_PODS,
    ),
    "Restarting": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring is being replaced by one of the newest spec.",
        "It waits until the new pod is Ready.",
        NOTHING,
    ),
    "VolumesKept": Reason(
        "The object matches its spec except for the size or class of a volume, which a StatefulSet cannot change.",
        "It keeps the volume.",
        "Revert the field. Or enlarge the claim yourself and delete the StatefulSet with `--cascade=orphan`; the "
        "operator recreates it.",
    ),
    "VolumesFixed": Reason(
        "The spec adds or removes a volume of a pod, but the claim templates of its StatefulSet are immutable.",
        "It leaves the pod as it is.",
        "Revert `spec.storageVolumes`. Or delete the StatefulSet: the operator recreates it, and claims keep their "
        "data.",
    ),
}


MONITORS: Mapping[str, Reason] = {
    "ClusterMissing": Reason(
        "A named cluster does not exist, or its spec cannot be read. Or no cluster has the labels that a TidbMonitor "
        "selects.",
        "A TidbMonitor monitors its other clusters; with none, the operator keeps the objects that it created before. "
        "A Backup or Restore waits.",
        "Create the cluster, or correct its name in `spec.clusters` or `spec.dm.clusters` of the TidbMonitor, or in "
        "`spec.br` of the Backup or Restore.",
    ),
    "ReferenceMissing": Reason(
        "A Secret or ConfigMap of the TidbMonitor, or of a cluster with TLS, does not exist or lacks a key.",
        "It checks every 30 seconds, and leaves the monitor unchanged.",
        "Create the object in the message. For a cluster with TLS that is `<cluster>-cluster-client-secret`.",
    ),
    "PodsNotVisible": Reason(
        "The TidbMonitor names a cluster of another namespace, is not `clusterScoped`, and no binding there names its "
        "ServiceAccount: Prometheus cannot find the cluster's pods. v1.6 calls such a monitor Ready.",
        "It creates everything else, and checks every 30 seconds.",
        "Set `spec.clusterScoped: true`, or create a Role and a RoleBinding in the cluster's namespace that let "
        "ServiceAccount `<monitor>-monitor` get, list and watch pods.",
    ),
    "NotPermitted": Reason(
        "The spec requests rights in all namespaces, and this operator manages only one.",
        "It creates everything else; Prometheus finds pods in its own namespace.",
        "Remove `spec.clusterScoped`, or have an operator with `-cluster-scoped=true` manage the monitor.",
    ),
    "Migrating": Reason(
        "A StatefulSet replaces the Deployment of an operator before v1.2, and takes over its volume.",
        "It deletes the Deployment, then its claim, and reserves the volume for the new claim.",
        NOTHING,
    ),
    "VolumeWouldGo": Reason(
        "The operator cannot take over the volume of an older Deployment, because Kubernetes would delete the volume "
        "with its claim.",
        "It keeps both, and creates no StatefulSet.",
        '`kubectl patch pv NAME -p \'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}\'`, or delete the claim if '
        "you do not need its data.",
    ),
}
