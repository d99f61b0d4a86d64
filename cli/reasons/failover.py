"""Reasons of failover."""

from collections.abc import Mapping

from cli.reasons.reason import Reason

_NEXT_POD = "It starts another pod at the time in the message, unless the {} recovers."
_REPAIR_NODE = "Repair the node of the lost pod, or remove it for good; then recover, see operations.md#failover."
_WHEN_UP = (
    "Repair the lost pod. When its store is Up, recover: `spec.{}.recoverFailover: true`, see operations.md#failover."
)
_EXTRA_POD = "It removes the extra pod when the lost one answers again."
_WHY_LOST = "Find out why the pod that the message names has not recovered."


FAILING_OVER: Mapping[str, Reason] = {
    "PDMemberUnhealthy": Reason(
        "A PD member is lost: PD reports it as unhealthy, and Kubernetes reports that its pod or node is not Ready.",
        "It replaces the member at the time in the message, unless the member recovers.",
        "Repair the pod or node before then to keep its data in use.",
    ),
    "TiKVStoreDown": Reason(
        "A TiKV store is lost: PD reports it as Down, and Kubernetes reports that its pod or node is not Ready.",
        _NEXT_POD.format("store"),
        "Repair the pod or node before then to avoid copying its data.",
    ),
    "TiFlashStoreDown": Reason(
        "A TiFlash store is lost: PD reports it as Down, and Kubernetes reports that its pod or node is not Ready.",
        _NEXT_POD.format("store"),
        "Repair the pod or node before then to avoid copying its replicas.",
    ),
    "TiDBMemberUnhealthy": Reason(
        "A TiDB server is lost: it does not answer, and Kubernetes reports that its pod or node is not Ready.",
        _NEXT_POD.format("server"),
        "Run `kubectl describe pod` and `kubectl logs` for the pod in the message.",
    ),
    "PDFailover": Reason(
        "The operator is replacing a lost PD member. It records the member in `status.pd.failureMembers`, removes it "
        "from PD, deletes its pod and volumes, and starts one more pod when that pod has ended.",
        "It replaces one member at a time, and only while a majority is healthy.",
        "Nothing. The failover ends when all requested members are healthy.",
    ),
    "TiKVFailover": Reason(
        "The operator has recorded a lost TiKV store in `status.tikv.failureStores`, and starts another pod in its "
        "place.",
        "PD copies the lost data to the other stores. The operator keeps the lost pod and its volumes.",
        _REPAIR_NODE,
    ),
    "TiFlashFailover": Reason(
        "The operator has recorded a lost TiFlash store in `status.tiflash.failureStores`, and starts another pod in "
        "its place.",
        "PD recreates the lost replicas on the other stores. The operator keeps the lost pod and its volumes.",
        _REPAIR_NODE,
    ),
    "TiDBFailover": Reason(
        "The operator has recorded a lost TiDB server in `status.tidb.failureMembers`, and starts another pod in its "
        "place.",
        _EXTRA_POD,
        "Repair the lost pod.",
    ),
    "PDFailedOver": Reason(
        "A PD member was lost, and another one serves in its place.",
        "It removes the extra pod when all requested members are healthy again.",
        _WHY_LOST,
    ),
    "TiKVFailedOver": Reason(
        "A TiKV store was lost, and another one serves in its place until you request the recovery.",
        "It keeps the extra pods.",
        _WHEN_UP.format("tikv"),
    ),
    "TiFlashFailedOver": Reason(
        "A TiFlash store was lost, and another one serves in its place until you request the recovery.",
        "It keeps the extra pods.",
        _WHEN_UP.format("tiflash"),
    ),
    "TiDBFailedOver": Reason(
        "A TiDB server was lost, and another one serves in its place.",
        _EXTRA_POD,
        _WHY_LOST,
    ),
    "FailoverLimit": Reason(
        "The operator has replaced `maxFailoverCount` pods, and one more is lost.",
        "It replaces no more. The next loss may cost data.",
        "Repair the lost pods now. If they are gone for good, raise `maxFailoverCount` of the component.",
    ),
    "PDJoinFailed": Reason(
        "A PD pod ended after PD had added it as a member and before it started. While PD lists this nameless member, "
        "it refuses every join, also by the pod itself.",
        "After a minute it removes the member from PD, if the pod crash-loops and a majority is healthy. Then the pod "
        "joins as a new member.",
        "Nothing. If the pod still crash-loops then, its volume belongs to the old member: delete its PVC and the pod.",
    ),
    "PDBootstrapRefused": Reason(
        "No PD member runs, and the PD pods have no data, but a PD cluster exists: its id is in the status or on "
        "volume claims, or stores are known. A new PD cluster could not read the data of these stores.",
        "Discovery lets no pod bootstrap a cluster. The pods wait.",
        "Restore PD's volumes, or recover PD with `pd-recover`. To abandon all data, delete TiKV's volume claims and "
        "set the annotation `tidb.pingcap.com/force-pd-bootstrap` of the TidbCluster to the cluster id in the message.",
    ),
    "PDQuorumLost": Reason(
        "Half or more of PD's members are lost. PD has no leader, and the database does not serve.",
        "It replaces no member: without a quorum that would lose PD's data.",
        "Repair pods, nodes or volumes until a majority runs. If they are gone for good, recover PD with `pd-recover`, "
        "see lost-quorum.md.",
    ),
    "SubstituteLost": Reason(
        "A substitute, which failover started for a lost pod, has served and is lost itself.",
        "It replaces no substitute: otherwise a failing machine room would fill up with pods.",
        "Repair one of the pods in the message, or raise `replicas` of the component by one.",
    ),
    "HostDown": Reason(
        "The node of a lost pod is down (only with `-detect-node-failure`).",
        'With the annotation `app.kubernetes.io/auto-failure-recovery: "true"` it force-deletes the pod, gives the '
        "recreated pod 10 minutes, then abandons its data and starts it on new volumes.",
        "`kubectl cordon` the node. Without the annotation, the decision is yours.",
    ),
}
