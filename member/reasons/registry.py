"""Every reason that a condition of a TidbCluster may have, and every outcome of a command on a pod.

A test holds this list and the code to each other. Texts are Markdown, for somebody who was just woken.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """`means`: what is the case. `meanwhile`: what the operator does about it. `you`: what the user can do."""

    means: str
    meanwhile: str
    you: str


_NOTHING = "Nothing."
_TRANSIENT = "Nothing: this is transient."
_AT_ONCE = "It retries in less than a second."
_LOOK_AT_PD = (
    "`kubectl get pods -l app.kubernetes.io/component=pd`, then `kubectl logs` of the pods that are not Ready. If all "
    "of them are Ready, the operator cannot reach PD: check NetworkPolicies, DNS, and the operator's log."
)
_LOOK_AT_PODS = "`kubectl describe pod` of the pods that the message names; their events say what is missing."

_READY: Mapping[str, Reason] = {
    "Ready": Reason(
        "All requested replicas are running and serving.",
        "It watches. If the message continues after a semicolon, it is working on what that part says.",
        _NOTHING,
    ),
    "StatefulSetNotUpToDate": Reason(
        "Some pods do not run the newest revision of their StatefulSet yet: a rolling restart is in progress. The "
        "cluster usually serves.",
        "It restarts the pods one by one, PD before TiKV before TiDB. The rest of the message says what it is waiting "
        "for.",
        "Nothing. If it does not end, the condition `Progressing` says what is blocking it.",
    ),
    "PDUnhealthy": Reason(
        "Not all requested PD members are healthy, or their number differs from the spec. The cluster serves as long "
        "as more than half of them are healthy.",
        "It waits. It starts a failover when a member has been lost for the failover period, and never removes a "
        "member that the quorum needs.",
        _LOOK_AT_PODS,
    ),
    "TiKVStoreNotUp": Reason(
        "Not all requested TiKV stores are Up, or their number differs from the spec. Data is available as long as at "
        "most one replica of each region is lost.",
        "It waits. It replaces stores that PD reports as Down after the failover period.",
        "`kubectl get tc NAME -o jsonpath='{.status.tikv.stores}'` shows the state of each store; then look at the pod "
        "of the one that is not Up.",
    ),
    "TiDBUnhealthy": Reason(
        "Not all TiDB servers answer on their status port, or their number differs from the spec. The others serve.",
        "It waits. It starts a substitute for a server that has not answered for the failover period.",
        "`kubectl logs POD -c tidb` of the servers that are unhealthy in `status.tidb.members`.",
    ),
    "TiFlashStoreNotUp": Reason(
        "The spec contains TiFlash, and no TiFlash store is known to be Up.",
        "This version does not manage TiFlash; everything else is managed.",
        "Remove `spec.tiflash`, or ignore the condition.",
    ),
    "TiCDCCaptureNotReady": Reason(
        "The spec contains TiCDC, and no capture is known to be up.",
        "This version does not manage TiCDC; everything else is managed.",
        "Remove `spec.ticdc`, or ignore the condition.",
    ),
    "MembersNotReady": Reason(
        "Fewer members of a component are healthy than the spec requests.",
        "It waits for them, and checks them less and less often.",
        "Look at the component's pods and their logs.",
    ),
    "TiProxyUnhealthy": Reason(
        "The spec contains TiProxy, and no TiProxy is known to be healthy.",
        "This version does not manage TiProxy; everything else is managed.",
        "Remove `spec.tiproxy`, or ignore the condition.",
    ),
}

_SPEC: Mapping[str, Reason] = {
    "Done": Reason("The cluster matches its spec.", "It watches.", _NOTHING),
    "InvalidSpec": Reason(
        "The spec contains a value that is not allowed, or changes one that cannot be changed. The message names each "
        "field.",
        "It makes no changes to this cluster until the spec is corrected. Everything that is running keeps running.",
        "Correct the fields that the message names and apply the manifest again.",
    ),
    "InstanceTaken": Reason(
        "Another TidbCluster of the namespace has the same instance name: the label `app.kubernetes.io/instance`, or "
        "without one the name. It stands in all selectors, so that both would take the other's pods for their own. The "
        "name belongs to the TidbCluster that runs or has data under it, else to the older one. Objects, and volumes "
        "with data, that a deleted TidbCluster has left hold the name, too.",
        "It makes no changes for this TidbCluster, and goes on as soon as the name is free.",
        "Give this TidbCluster another label `app.kubernetes.io/instance`. Argo CD sets it: let it track by annotation "
        "(`application.resourceTrackingMethod: annotation`), or choose another label for it "
        "(`application.instanceLabelKey`). The selectors of a cluster that runs cannot change. If the other one is "
        "gone for good, delete the volume claims that the message names.",
    ),
    "ComponentRemoved": Reason(
        "The spec no longer has a component whose StatefulSet still has replicas. Removing one from the spec deletes "
        "nothing, as in v1.6.",
        "It leaves the pods of that component as they are and shows their status. It restarts no pod of the cluster "
        "for a change of the spec, as the pods of one component show what the spec says of others; all else goes on.",
        "Restore the component as it was: nothing is restarted. To remove TiDB, set its `replicas` to 0, wait until "
        "its pods are gone, then remove it. PD and TiKV hold the data: to remove them, delete the TidbCluster.",
    ),
    "NotYetSupported": Reason(
        "The spec requests something that this version does not support. The message names the field.",
        "It ignores that part and manages everything else.",
        "Revert the change, or wait for a version that supports it.",
    ),
    "Paused": Reason(
        "`spec.paused` is true.",
        "It observes the cluster and keeps the status up to date. It only writes the ids of pods and volumes "
        "as labels.",
        '`kubectl patch tc NAME --type=merge -p \'{"spec":{"paused":false}}\'`. All edits made meanwhile are '
        "rolled out together.",
    ),
    "FailedUpdatePDSTS": Reason(
        "PD's pods would mount a volume that they do not have, or lose one that they have: the claim templates of a "
        "StatefulSet cannot be changed.",
        "It leaves PD's pods as they are.",
        "Restore `spec.pd.storageVolumes` and the mounts.",
    ),
    "FailedUpdateTiKVSTS": Reason(
        "TiKV's pods would mount a volume that they do not have, or lose one that they have: the claim templates of a "
        "StatefulSet cannot be changed.",
        "It leaves TiKV's pods as they are.",
        "Restore `spec.tikv.storageVolumes` and the mounts.",
    ),
    "FailedUpdateTiDBSTS": Reason(
        "TiDB's pods would mount a volume that they do not have, or lose one that they have: the claim templates of a "
        "StatefulSet cannot be changed.",
        "It leaves TiDB's pods as they are.",
        "Restore `spec.tidb.storageVolumes` and the mounts.",
    ),
}

_STARTING: Mapping[str, Reason] = {
    "ForeignEdit": Reason(
        "Somebody other than the operator has changed the spec of a StatefulSet: its pod template, the partition of "
        "its update strategy, or another field that only the operator writes. The message names the first field.",
        "It has written back what it had written before, with the partition above all pods. Pods that had already "
        "come to the foreign template are restarted one by one, like in a rolling restart; the others stay.",
        "Change the TidbCluster instead of the StatefulSet. To restart pods, set the annotation "
        "`tidb.pingcap.com/restartedAt` in `spec.<component>.annotations`; `kubectl rollout restart` is undone. If it "
        "comes again and again, find out who writes: `kubectl get sts NAME --show-managed-fields -o yaml`.",
    ),
    "Creating": Reason("A StatefulSet was just created.", "It waits for the first pods.", _TRANSIENT),
    "WaitingForPD": Reason(
        "TiKV, or the restart of TiKV's or TiDB's pods, waits for PD: for a quorum of healthy members, or for the end "
        "of PD's own upgrade or scaling.",
        "It takes care of PD first, then continues without further action.",
        "Look at what PD is waiting for: `kubectl get tc NAME -o jsonpath='{.status.pd.conditions}'`.",
    ),
    "WaitingForTiKV": Reason(
        "TiDB, or the restart of TiDB's pods, waits for TiKV: for a store that is Up, or for the end of TiKV's own "
        "upgrade or scaling.",
        "It takes care of TiKV first, then continues without further action.",
        "Look at what TiKV is waiting for: `kubectl get tc NAME -o jsonpath='{.status.tikv.conditions}'`.",
    ),
    "WaitingForVolumes": Reason(
        "The cluster is being restored from volume snapshots, and the restore has not created TiKV's volumes yet.",
        "It starts TiKV once the annotation `tidb.pingcap.com/tikv-volumes-ready` is set.",
        "Look at the Restore object.",
    ),
    "WaitingForRestore": Reason(
        "`spec.recoveryMode` is true: PD and TiKV are running for a restore.",
        "It starts TiDB once the field is false.",
        "Let the restore finish, or set the field to false.",
    ),
    "MissingSecret": Reason(
        "`spec.tidb.tlsClient.enabled` requires a Secret that does not exist, or that lacks `tls.crt` or `tls.key`.",
        "It creates no TiDB pods, because they could not start. It checks for the Secret regularly.",
        "Create the Secret that the message names.",
    ),
    "PodsNotReady": Reason(
        "Fewer pods are Ready than requested. The message names the missing ones and what Kubernetes reports about "
        "them.",
        "It waits for Kubernetes to start them. A pod command waits until the other pods are Ready.",
        f"{_LOOK_AT_PODS} After a wrong image or configuration: correct the spec; broken pods are replaced first.",
    ),
    "PDNotReady": Reason(
        "No PD pod is Ready, so members and stores are unknown.",
        "It waits. It makes no decision that depends on PD.",
        _LOOK_AT_PODS,
    ),
    "PDNotAnswering": Reason(
        "A new PD, which has never answered before, does not answer yet.",
        "It retries; TiKV waits.",
        f"Nothing for the first minute. After that: {_LOOK_AT_PD}",
    ),
    "NotBootstrapped": Reason(
        "PD is running, and no TiKV store has registered with it yet.",
        "It waits for the first store.",
        "If this persists: `kubectl logs POD -c tikv`.",
    ),
    "StoresNotUp": Reason(
        "A TiKV store is not Up, and the next step requires all of them to be Up: the restart of another TiKV pod, an "
        "eviction, or a replacement. The message names the stores.",
        "It waits until they are Up: with a second store unavailable, data could become unreadable.",
        "Repair the store. For a restart only, and if you are sure: "
        '`kubectl annotate tc NAME tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade="false"`.',
    ),
    "OrphanPod": Reason(
        "Pods were waiting for volume claims that had been deleted.",
        "It has deleted those pods; the StatefulSet recreates them together with their claims.",
        _NOTHING,
    ),
}

_PD_AND_STORES: Mapping[str, Reason] = {
    "PDUnreachable": Reason(
        "PD answered before and does not answer now, or answers with an error.",
        "It retries with increasing delays. It makes no decision that depends on PD; everything that is running keeps "
        "running.",
        _LOOK_AT_PD,
    ),
    "PDUnknown": Reason(
        "PD must report its members before its pods are restarted or scaled, and it does not.",
        "It leaves PD's pods alone until PD answers. Pods that are broken are still restarted.",
        f"{_LOOK_AT_PD} As a last resort, restart all of them at once: `kubectl annotate tc NAME "
        'tidb.pingcap.com/force-upgrade="true"`.',
    ),
    "AddressNotUnderstood": Reason(
        "PD reports a member or a store that looks like a pod of this cluster, but at an address that its pods do not "
        "advertise. Whether it is one of them is unknown. The message names it.",
        "It scales in, restarts and replaces nothing of PD and TiKV until the address is understood.",
        "Compare `pd-ctl member` and `pd-ctl store` with the pods. Correct the address that the server advertises, or "
        "remove a member or store that does not exist any more with `pd-ctl`.",
    ),
    "StoresUnknown": Reason(
        "PD must report the TiKV stores before TiKV is restarted or scaled, and it does not, or its answer lacks "
        "stores that were there before.",
        "It leaves TiKV's pods alone until PD reports their stores.",
        _LOOK_AT_PD,
    ),
    "StoreUnknown": Reason(
        "PD reports no store, or more than one, at the address of the pod that carries a command.",
        "It does not carry out the command, and retries.",
        "Run `pd-ctl store`: remove the store that should not be there, or remove the annotation from the pod.",
    ),
    "StoreNotUp": Reason(
        "The store of the pod that carries `replace-volume` is neither Up nor Offline.",
        "It retries with increasing delays.",
        "Repair the store first, or let failover replace it.",
    ),
    "DataPlaneUnreachable": Reason(
        "PD or a server did not answer in the middle of a rolling restart.",
        "It stops the rolling restart where it is, and retries with increasing delays.",
        _LOOK_AT_PD,
    ),
    "BadTLS": Reason(
        "The Secret `NAME-cluster-client-secret` lacks a certificate, a key or a CA, or they do not match.",
        "It sends no requests to the cluster until that is fixed; everything that is running keeps running.",
        "Fix the Secret that the message names.",
    ),
    "ForeignPDCluster": Reason(
        "PD reports another cluster id than this cluster has: it was started on empty volumes, or on those of another "
        "cluster.",
        "It makes no changes to this cluster.",
        "Restore PD's own volumes. To abandon the old data, delete the volume claims of TiKV and set the annotation "
        "`tidb.pingcap.com/force-pd-bootstrap` of the TidbCluster to the old cluster id.",
    ),
    "ForeignPD": Reason(
        "PD reports another cluster id than this cluster has, so commands on pods are ignored.",
        "It makes no changes to this cluster.",
        "See [ForeignPDCluster](ForeignPDCluster.md).",
    ),
}

_RESTARTING: Mapping[str, Reason] = {
    "RollingUpdate": Reason(
        "Pods are being restarted one by one, from the highest ordinal down. The message says which one is next, or "
        "what the operator is waiting for.",
        "It restarts the next pod when the pods above are Ready and serving, and the pod no longer leads anything.",
        "Nothing. If a pod does not become Ready: `kubectl describe pod`, then correct the spec; the pods that the "
        "wrong spec broke are replaced first.",
    ),
    "Scaling": Reason(
        "The pods have a new template while the component is being scaled.",
        "It finishes the scaling first, then restarts the pods.",
        _TRANSIENT,
    ),
    "OnDelete": Reason(
        "`statefulSetUpdateStrategy` is `OnDelete`: pods get the new revision when you delete them.",
        "It does not restart pods; the upgrade ends when all of them run the new revision.",
        "`kubectl delete pod` one by one, highest ordinal first, each after the previous one is Ready again.",
    ),
    "ForcedUpgrade": Reason(
        "PD does not answer, and you have set the force annotation or PD has a single member: all of its pods are "
        "restarted at once.",
        "It restarts them without checking quorum and leader.",
        "Remove the annotation afterwards: `kubectl annotate tc NAME tidb.pingcap.com/force-upgrade-`.",
    ),
    "PDQuorum": Reason(
        "Without the pod that is next, PD would not have a quorum of healthy members.",
        "It waits until the other members are healthy. With two members that is impossible, so it needs your decision.",
        "Repair the member that the message names. With two members: scale PD to 3, or accept a short outage with "
        '`kubectl annotate tc NAME tidb.pingcap.com/pd-check-quorum-before-upgrade="false"`.',
    ),
    "PDLoading": Reason(
        "A PD member was restarted and has not loaded all regions yet.",
        "It waits before restarting the next one.",
        _TRANSIENT,
    ),
    "TransferringPDLeader": Reason(
        "The pod that is next is the PD leader.",
        "It has asked PD to transfer the leadership and waits until another member leads.",
        _TRANSIENT,
    ),
    "EvictingLeaders": Reason(
        "Region leaders are being moved away from a TiKV store before its pod is restarted, or because you requested "
        "it by annotation.",
        "It waits until none is left, for its own restarts at most `spec.tikv.evictLeaderTimeout`.",
        "Nothing. A shorter `evictLeaderTimeout` takes effect immediately. The eviction never finishes with a single "
        "store, or when schedulers of your own move leaders back: `pd-ctl scheduler show`.",
    ),
    "LeadersComingBack": Reason(
        "A TiKV pod was restarted and leads fewer regions than before.",
        "It waits until two thirds have returned, at most `spec.tikv.waitLeaderTransferBackTimeout`.",
        _TRANSIENT,
    ),
    "DDLPaused": Reason(
        "TiDB is being upgraded to another version and DDL is paused (smooth upgrade).",
        "It resumes DDL when all servers run the new version and are healthy.",
        "Nothing. `ADMIN SHOW DDL JOBS` shows the paused jobs.",
    ),
    "ResumingDDL": Reason(
        "Another upgrade of TiDB began before the previous one had finished.",
        "It resumes DDL after the first upgrade before pausing it for the second one.",
        _TRANSIENT,
    ),
}

_SCALING: Mapping[str, Reason] = {
    "ScalingOut": Reason(
        "Pods are being added.",
        "It adds the next pods when the previous ones exist; for TiKV and TiDB as many at a time as "
        "`scalePolicy.scaleOutParallelism`.",
        "Nothing. If a pod remains Pending: `kubectl describe pod`.",
    ),
    "ScalingIn": Reason(
        "Pods are being removed, highest ordinals first. A TiKV store moves its data away first, and the message says "
        "how many regions are left; a PD member transfers its leadership and leaves PD.",
        "It removes a pod when PD reports its store as Tombstone, or no longer lists its member. Its volumes are kept.",
        "Nothing; with a lot of data this takes hours. Raise the replicas again to cancel it: a store that is still "
        "Offline becomes Up again and keeps its data.",
    ),
    "FailedScaleIn": Reason(
        "The scale-in would lose data, or something else depends on PD. The message says why.",
        "It removes nothing, and reverts the steps already taken.",
        "Raise the replicas again. To continue: lower PD's `max-replicas` first, or remove what the message names.",
    ),
    "StalePVC": Reason(
        "A new pod would start on the volume claim of an earlier one.",
        "It deletes a claim that a scale-in left behind, and waits for the deletion. It keeps any other claim.",
        "If `Progressing` is False: inspect the data of the claim that the message names, then "
        "`kubectl delete pvc CLAIM`.",
    ),
}

_VOLUMES: Mapping[str, Reason] = {
    "GrowingVolumes": Reason(
        "Volume claims request more storage, and the storage provider has not granted it to all of them yet.",
        "It waits, then recreates the StatefulSet with the new size. No pod is restarted.",
        "Nothing. If this persists: `kubectl describe pvc CLAIM` shows what the provider reports.",
    ),
    "VolumeCantChange": Reason(
        "A volume cannot be changed as the spec requests: it would be smaller, of another class, or its class does not "
        "allow expansion.",
        "It leaves the volumes of that component as they are.",
        "Set the size or class back to what the message says. To have the volumes replaced, pod by pod, after their "
        "data has been moved away: `spec.enablePVCReplace: true`. To allow expansion: `kubectl patch storageclass "
        "CLASS -p '{\"allowVolumeExpansion\":true}'`.",
    ),
    "VolumeBeingDeleted": Reason(
        "Somebody has deleted the volume claim of a pod that runs. Kubernetes keeps it until the pod ends; then its "
        "data is lost. A deletion cannot be taken back.",
        "It restarts no Ready pod of that component, not even for a change of the spec.",
        "Have the data moved away and the volume replaced: `kubectl annotate pod POD "
        "tidb.pingcap.com/replace-volume=true`. TiKV needs a store to spare for that: scale it out first.",
    ),
    "Recreating": Reason(
        "A StatefulSet was deleted without its pods and is being recreated.",
        "It recreates it with the template that the pods are running, so that none is restarted.",
        _TRANSIENT,
    ),
}

_SUSPENDING: Mapping[str, Reason] = {
    "Suspending": Reason(
        "`suspendAction.suspendStatefulSet` is true and pods still exist: TiDB is suspended before TiKV before PD, and "
        "no component in the middle of an upgrade.",
        "It finishes what is in progress, then removes the StatefulSets.",
        "Nothing; set the field to false to cancel it.",
    ),
    "NodeLost": Reason(
        "Pods are to be removed, but their node does not answer: nobody can tell whether their processes have ended.",
        "It waits: Kubernetes ends such a pod only when its node is back, or its Node object is deleted.",
        "If the machine is gone for good, `kubectl delete node NODE`. If it may come back, wait: two processes on the "
        "same data destroy it.",
    ),
    "Suspended": Reason(
        "No pods are running, as the spec requests. Volumes, configuration and Services are kept. The condition "
        "`Ready` is False.",
        "It waits until you resume the cluster.",
        "To resume: set `spec.suspendAction.suspendStatefulSet` to false; see operations.md.",
    ),
}

_FAILING_OVER: Mapping[str, Reason] = {
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
    "TiDBMemberUnhealthy": Reason(
        "A TiDB server is lost: it does not answer, and Kubernetes reports that its pod or node is not Ready.",
        "It starts another pod at the time in the message, unless the server recovers.",
        "`kubectl describe pod` and `kubectl logs` of the pod that the message names.",
    ),
    "PDFailover": Reason(
        "A lost PD member is being replaced: it is recorded in `status.pd.failureMembers` and removed from PD, its "
        "volumes are deleted, and one more pod is started.",
        "It replaces one member at a time, and only with a majority of healthy members.",
        "Nothing. The failover ends when all requested members are healthy.",
    ),
    "TiKVFailover": Reason(
        "A lost TiKV store is being replaced: it is recorded in `status.tikv.failureStores`, and one more pod is "
        "started.",
        "PD copies the lost data to the other stores. The lost pod and its volumes are kept.",
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
        "A PD pod ended after PD had added it as a member and before it could start. PD refuses every further join, "
        "that of the pod itself too, as long as it lists this member, which has no name.",
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

_COMMANDS: Mapping[str, Reason] = {
    "AnotherPodRestarting": Reason(
        "Another pod of the component is being restarted by a command.",
        "It starts with this pod when the other one is Ready again.",
        _TRANSIENT,
    ),
    "PDBusy": Reason(
        "A PD pod carries `pd-transfer-leader` while PD is being upgraded, scaled or suspended.",
        "It retries every minute.",
        _TRANSIENT,
    ),
    "ComponentBusy": Reason(
        "A pod carries a command, and its component, or one that it depends on, is being upgraded or scaled.",
        "It retries every minute.",
        _TRANSIENT,
    ),
    "PodChanged": Reason("The pod that carries a command has just changed.", _AT_ONCE, _TRANSIENT),
    "ReplacingVolume": Reason(
        "A pod carries `tidb.pingcap.com/replace-volume`, set by you, or by the operator where `spec.enablePVCReplace` "
        "allows it: its member or store leaves PD, then its claims and the pod are deleted, and recreated empty.",
        "It continues when PD has removed the member, or moved all data off the store.",
        "Nothing. To cancel it before the store is Tombstone: remove the annotation, and set the store to Up in PD.",
    ),
    "TooFewStores": Reason(
        "Without the store of a pod, fewer TiKV stores would be Up than PD keeps replicas.",
        "It does not remove the store. It retries every minute.",
        "Raise `spec.tikv.replicas` by one first, with `kubectl patch tc`.",
    ),
    "NoSuccessor": Reason(
        "A PD pod carries `pd-transfer-leader`, and no other member is healthy and without that annotation.",
        "It leaves the leader where it is, and retries every minute.",
        "Repair another member, or remove the annotation from one of the pods.",
    ),
    "NoOtherStore": Reason(
        "The leaders of the only TiKV store cannot be moved.",
        "It leaves them where they are.",
        "Remove the annotation, or add a store.",
    ),
    "PodRestarted": Reason(
        "The pod was deleted, as its command requested; the StatefulSet recreates it.", "It is done.", _NOTHING
    ),
    "LeaderEvictionEnded": Reason(
        "Leaders may return to a TiKV pod: its annotation was removed, or the pod is Ready again.",
        "It has removed the scheduler from PD.",
        _NOTHING,
    ),
    "EvictLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/tikv-evict-leader-expiration-time` has passed, or is not an RFC 3339 time with "
        "a time zone.",
        "It has removed the command from the pod.",
        "Annotate the pod again if leaders should be kept away.",
    ),
    "LeaderTransferred": Reason("The pod does not lead PD, as long as another member can.", "It is done.", _NOTHING),
    "TransferLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/pd-evict-leader-expiration-time` has passed, or is not an RFC 3339 time with a "
        "time zone.",
        "It has removed the command from the pod.",
        "Annotate the pod again if it should not lead.",
    ),
}

_PASSING: Mapping[str, Reason] = {
    "Conflict": Reason("Another client changed the same object at the same time.", _AT_ONCE, _TRANSIENT),
    "SpecChanged": Reason(
        "Before anything is destroyed, the spec is read live; it was newer than the one in the operator's cache.",
        _AT_ONCE,
        _TRANSIENT,
    ),
    "CacheOutdated": Reason("The operator's cache does not show the StatefulSet yet.", _AT_ONCE, _TRANSIENT),
    "ClusterDeleted": Reason(
        "The TidbCluster was deleted in the middle of a reconcile.",
        "It makes no more changes; Kubernetes removes what belongs to the cluster. Volumes are kept.",
        _NOTHING,
    ),
}


def _kubernetes(means: str, you: str = "If this persists: look at the API server and at the operator's log.") -> Reason:
    return Reason(means, "It retries the failed stage with increasing delays; the other stages continue.", you)


_PERMISSIONS = (
    "Compare the operator's permissions with manifests/operator/rbac-cluster.yaml; the message names verb and resource."
)

_ERRORS: Mapping[str, Reason] = {
    "ApiError": _kubernetes("The API server, or a component, refused a request. The message contains its answer."),
    "BadRequest": _kubernetes("The API server rejected a request as malformed."),
    "Unauthorized": _kubernetes("The API server does not accept the operator's credential.", _PERMISSIONS),
    "Forbidden": _kubernetes("The operator lacks a permission.", _PERMISSIONS),
    "NotFound": _kubernetes("A required object is missing. The message names it."),
    "MethodNotAllowed": _kubernetes("The API server does not support a verb on a resource."),
    "AlreadyExists": _kubernetes(
        "An object of the required name exists already.",
        "If this persists: find out who owns it; delete or rename it.",
    ),
    "Expired": _kubernetes("A list had become too old to be continued.", _TRANSIENT),
    "Invalid": _kubernetes(
        "The API server rejected an object. The message names the fields.",
        "Correct the fields in the spec that the message names; quotas and admission webhooks may be the cause, too.",
    ),
    "TooManyRequests": _kubernetes("The API server is overloaded.", "Find out which client overloads it."),
    "InternalError": _kubernetes(
        "The API server, or a webhook that it calls, failed. If the message says `internal error`, the operator itself "
        "has a defect, and the message names the exception.",
        "If this persists: report a defect of the operator together with the stack trace in its log; for the API "
        "server, look at its log and at those of its webhooks.",
    ),
    "ServerTimeout": _kubernetes("The API server timed out, perhaps while waiting for etcd."),
    "TransportError": _kubernetes("A request to the API server got no answer."),
    "ConnectionRefused": _kubernetes("No server is listening at the API server's address."),
    "ConnectionLost": _kubernetes("The connection to the API server was closed before its answer arrived."),
    "RequestTimeout": _kubernetes("The API server did not answer in time."),
    "TlsError": _kubernetes("The TLS handshake with the API server failed."),
    "CredentialMissing": _kubernetes("The operator could not obtain its credential.", _PERMISSIONS),
    "TransportClosed": _kubernetes("The operator is shutting down.", _NOTHING),
    "ForeignOwner": Reason(
        "An object of the required name belongs to another owner. The message names both. If that owner is a "
        "TidbCluster of the same name, it was deleted, and Kubernetes is about to delete what it has left.",
        "It leaves that object alone and does nothing more for the component that needs the name. It goes on when the "
        "object changes, or within half a minute when the object lacks the label "
        "`app.kubernetes.io/managed-by: tidb-operator`.",
        "Delete or rename that object, or the TidbCluster. An object without a controller is adopted when its "
        "`app.kubernetes.io/` labels are those of the component.",
    ),
    "DataPlaneError": _kubernetes("A call to PD, TiKV or TiDB failed.", _LOOK_AT_PD),
    "Unavailable": _kubernetes("PD, TiKV or TiDB did not answer. The message names the address.", _LOOK_AT_PD),
    "BadTlsMaterial": _kubernetes(
        "The Secret with the operator's client certificate cannot be used.",
        "See [BadTLS](BadTLS.md).",
    ),
    "MalformedAnswer": _kubernetes(
        "PD, TiKV or TiDB answered with something that this version does not understand.",
        "Compare the version of the component with the versions that the operator supports, and report it.",
    ),
}

TOPICS: Mapping[str, Mapping[str, Reason]] = {
    "Is it serving": _READY,
    "The spec": _SPEC,
    "Starting": _STARTING,
    "PD or the stores are unknown": _PD_AND_STORES,
    "Restarting pods": _RESTARTING,
    "Scaling": _SCALING,
    "Volumes": _VOLUMES,
    "Suspending": _SUSPENDING,
    "Failover": _FAILING_OVER,
    "Commands on pods": _COMMANDS,
    "Transient": _PASSING,
    "Errors": _ERRORS,
}
"""Topic → reason → what it means."""

REASONS: Mapping[str, Reason] = {name: reason for topic in TOPICS.values() for name, reason in topic.items()}
"""Reason → what it means."""
