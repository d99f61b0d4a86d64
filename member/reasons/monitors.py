"""Reasons of TidbMonitors."""

from collections.abc import Mapping

from member.reasons.reason import NOTHING, Reason

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
