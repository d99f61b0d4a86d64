"""Reasons of failover."""

from collections.abc import Mapping

from cli.reasons.reason import Reason

FAILING_OVER: Mapping[str, Reason] = {
    "PDMemberUnhealthy": Reason(
        "A PD member is lost: PD reports it as unhealthy, and Kubernetes reports that its pod or node is not Ready.",
        "It replaces the member at the time in the message, unless the member recovers.",
        "Repair the pod or node before that time to keep its data in use.",
    ),
    "TiKVStoreDown": Reason(
        "A TiKV store is lost: PD reports it as Down, and Kubernetes reports that its pod or node is not Ready.",
        "It starts another pod at the time in the message, unless the store recovers.",
        "Repair the pod or node before that time to avoid copying its data.",
    ),
    "TiFlashStoreDown": Reason(
        "A TiFlash store is lost: PD reports it as Down, and Kubernetes reports that its pod or node is not Ready.",
        "It starts another pod at the time in the message, unless the store recovers.",
        "Repair the pod or node before that time to avoid copying its replicas.",
    ),
    "TiDBMemberUnhealthy": Reason(
        "A TiDB server is lost: it does not answer, and Kubernetes reports that its pod or node is not Ready.",
        "It starts another pod at the time in the message, unless the server recovers.",
        "`kubectl describe pod` and `kubectl logs` of the pod that the message names.",
    ),
    "PDFailover": Reason(
        "A lost PD member is being replaced: it is recorded in `status.pd.failureMembers` and removed from PD, its pod "
        "and volumes are deleted, and when the pod has ended, one more is started.",
        "It replaces one member at a time, and only with a majority of healthy members.",
        "Nothing. The failover ends when all requested members are healthy.",
    ),
    "TiKVFailover": Reason(
        "A lost TiKV store is being replaced: it is recorded in `status.tikv.failureStores`, and one more pod is "
        "started.",
        "PD copies the lost data to the other stores. The lost pod and its volumes are kept.",
        "Repair the node of the lost pod, or remove it for good; then recover, see operations.md.",
    ),
    "TiFlashFailover": Reason(
        "A lost TiFlash store is being replaced: it is recorded in `status.tiflash.failureStores`, and one more pod is "
        "started.",
        "PD recreates the lost replicas on the other TiFlash stores. The lost pod and its volumes are kept.",
        "Repair the node of the lost pod, or remove it for good; then recover, see operations.md.",
    ),
    "TiDBFailover": Reason(
        "A lost TiDB server is being replaced: it is recorded in `status.tidb.failureMembers`, and one more pod is "
        "started.",
        "It removes the extra pod when the lost one answers again.",
        "Repair the lost pod.",
    ),
    "PDFailedOver": Reason(
        "A PD member was lost, and another one is serving in its place.",
        "It removes the extra pod when all requested members are healthy again.",
        "Find out why the pod that the message names has not recovered.",
    ),
    "TiKVFailedOver": Reason(
        "A TiKV store was lost, and another one is serving in its place. This lasts until you confirm that the lost "
        "one has recovered.",
        "Nothing more: the extra pods are kept.",
        "Repair the lost pod; when its store is Up, recover: `spec.tikv.recoverFailover: true`, see operations.md.",
    ),
    "TiFlashFailedOver": Reason(
        "A TiFlash store was lost, and another one is serving in its place. This lasts until you confirm that the lost "
        "one has recovered.",
        "Nothing more: the extra pods are kept.",
        "Repair the lost pod; when its store is Up, recover: `spec.tiflash.recoverFailover: true`, see operations.md.",
    ),
    "TiDBFailedOver": Reason(
        "A TiDB server was lost, and another one is serving in its place.",
        "It removes the extra pod when the lost one answers again.",
        "Find out why the pod that the message names has not recovered.",
    ),
    "FailoverLimit": Reason(
        "As many pods have been replaced as `maxFailoverCount` allows, and one more is lost.",
        "It replaces no more. The cluster may be close to losing data: the next loss may be one too many.",
        "Repair the lost pods now. If they are gone for good, raise `maxFailoverCount` of the component.",
    ),
    "PDJoinFailed": Reason(
        "A PD pod ended after PD had added it as a member and before it could start. While PD lists this "
        "member, which has no name, PD refuses every further join, also by the pod itself.",
        "It removes the member from PD after a minute, if the pod is restarted again and again and a majority of the "
        "members is healthy. Then the pod joins as if for the first time.",
        "Nothing. If the pod is still restarted then, its volume belongs to that member: delete its PVC and the pod.",
    ),
    "PDBootstrapRefused": Reason(
        "No PD member runs, but a PD cluster exists: its id is in the status or on volume claims, or stores are known. "
        "The PD pods have no data; a new cluster that one of them bootstrapped could not read the data of the stores.",
        "Discovery lets no pod bootstrap a cluster. The pods wait.",
        "Restore the volumes of PD, or recover PD with `pd-recover`. To abandon all data, delete the volume claims of "
        "TiKV and set the annotation `tidb.pingcap.com/force-pd-bootstrap` of the TidbCluster to the cluster id that "
        "the message names.",
    ),
    "PDQuorumLost": Reason(
        "Half or more of PD's members are lost. PD has no leader, and the database does not serve.",
        "It replaces no member: without a quorum that would lose PD's data.",
        "Repair pods, nodes or volumes until a majority is running. If they are gone for good, recover PD with "
        "`pd-recover`.",
    ),
    "SubstituteLost": Reason(
        "A pod that failover started in the place of a lost one has served, and is lost itself.",
        "It replaces no substitutes: without that limit, an ailing machine room would fill up with pods.",
        "Repair one of the pods that the message names, or raise `replicas` of the component by one.",
    ),
    "HostDown": Reason(
        "The node of a lost pod is down (only with `-detect-node-failure`).",
        'With the annotation `app.kubernetes.io/auto-failure-recovery: "true"` it force-deletes the pod, gives the '
        "recreated pod 10 minutes, then abandons its data and starts it on new volumes.",
        "`kubectl cordon` the node. Without the annotation, the decision is yours.",
    ),
}
