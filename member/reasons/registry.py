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
_PATIENCE = "Nothing: it passes by itself."
_AT_ONCE = "It looks again in less than a second."
_LOOK_AT_PD = (
    "`kubectl get pods -l app.kubernetes.io/component=pd` and `kubectl logs` of those that are not Ready. Where all "
    "are Ready, the way from the operator to PD is broken: look for NetworkPolicies, DNS, and the operator's log."
)
_LOOK_AT_PODS = "`kubectl describe pod` of those that the message names; its events say what is missing."
_SETTLE = (
    "`kubectl get tc -w -o wide` until the column Status says no more than `TiDB cluster is fully up and running`."
)

_READY: Mapping[str, Reason] = {
    "Ready": Reason(
        "All that the spec asks for runs and serves.",
        "It watches. Where the message goes on after a semicolon, it is at work on what that says.",
        _NOTHING,
    ),
    "StatefulSetNotUpToDate": Reason(
        "Some pods do not run the newest revision of their StatefulSet yet: a rolling restart is under way. The "
        "cluster usually serves.",
        "It restarts pod after pod, PD before TiKV before TiDB. The message goes on with what it waits for.",
        "Nothing. If it stays, the condition `Progressing` says what is in the way.",
    ),
    "PDUnhealthy": Reason(
        "Not every PD member that is wanted is healthy, or their number is not that of the spec. The cluster serves as "
        "long as more than half are healthy.",
        "It waits; it starts failover when a member is lost for the failover period, and never takes away a member "
        "that the quorum needs.",
        _LOOK_AT_PODS,
    ),
    "TiKVStoreNotUp": Reason(
        "Not every TiKV store that is wanted is Up, or their number is not that of the spec. Data stays available "
        "while at most one replica of each region is lost.",
        "It waits; stores that PD calls Down are replaced after the failover period.",
        "`kubectl get tc NAME -o jsonpath='{.status.tikv.stores}'` tells the state of each store; then the pod of the "
        "one that is not Up.",
    ),
    "TiDBUnhealthy": Reason(
        "Not every TiDB server answers its status port, or their number is not that of the spec. The others serve.",
        "It waits; a server that is silent for the failover period gets a substitute.",
        "`kubectl logs POD -c tidb` of the servers that `status.tidb.members` calls unhealthy.",
    ),
    "TiFlashStoreNotUp": Reason(
        "The spec has TiFlash, and no TiFlash store is known to be Up.",
        "This version does not manage TiFlash; the rest is kept in order.",
        "Remove `spec.tiflash`, or ignore the condition.",
    ),
    "TiCDCCaptureNotReady": Reason(
        "The spec has TiCDC, and no capture is known to be up.",
        "This version does not manage TiCDC; the rest is kept in order.",
        "Remove `spec.ticdc`, or ignore the condition.",
    ),
    "MembersNotReady": Reason(
        "Fewer members of a component are healthy than the spec asks for.",
        "It waits for them, and looks at them more and more rarely.",
        "Look at the component's pods and their logs.",
    ),
    "TiProxyUnhealthy": Reason(
        "The spec has TiProxy, and no TiProxy is known to be healthy.",
        "This version does not manage TiProxy; the rest is kept in order.",
        "Remove `spec.tiproxy`, or ignore the condition.",
    ),
}

_SPEC: Mapping[str, Reason] = {
    "Done": Reason("Everything is as the spec wants it.", "It watches.", _NOTHING),
    "InvalidSpec": Reason(
        "The spec has a value that is not allowed, or changes one that can't be changed. The message names each field.",
        "Nothing at all is written for this cluster until that is put right. What runs goes on running.",
        "Correct the fields that the message names and apply the manifest again.",
    ),
    "NotYetSupported": Reason(
        "The spec asks for something that this version does not do. The message names the field.",
        "It leaves that alone and keeps the rest in order.",
        "Take the change back, or wait for a version that does it.",
    ),
    "Paused": Reason(
        "`spec.paused` is true.",
        "It observes and keeps the status up to date. Of the cluster it writes nothing but the ids of pods and volumes "
        "as labels.",
        '`kubectl patch tc NAME --type=merge -p \'{"spec":{"paused":false}}\'`. What was edited meanwhile becomes one '
        "roll.",
    ),
    "FailedUpdatePDSTS": Reason(
        "PD's pods would mount a volume that they can't have, or lose one that they have: the claim templates of a "
        "StatefulSet can't be changed.",
        "It leaves PD's pods as they are.",
        "Put `spec.pd.storageVolumes` and the mounts back.",
    ),
    "FailedUpdateTiKVSTS": Reason(
        "TiKV's pods would mount a volume that they can't have, or lose one that they have: the claim templates of a "
        "StatefulSet can't be changed.",
        "It leaves TiKV's pods as they are.",
        "Put `spec.tikv.storageVolumes` and the mounts back.",
    ),
    "FailedUpdateTiDBSTS": Reason(
        "TiDB's pods would mount a volume that they can't have, or lose one that they have: the claim templates of a "
        "StatefulSet can't be changed.",
        "It leaves TiDB's pods as they are.",
        "Put `spec.tidb.storageVolumes` and the mounts back.",
    ),
}

_STARTING: Mapping[str, Reason] = {
    "Creating": Reason("A StatefulSet was just made.", "It waits for the first pods.", _PATIENCE),
    "WaitingForPD": Reason(
        "TiKV, or the restart of TiKV's or TiDB's pods, needs PD first: a quorum of healthy members, or the end of its "
        "own upgrade or scaling.",
        "It brings PD in order, then goes on by itself.",
        "Look at what PD waits for: `kubectl get tc NAME -o jsonpath='{.status.pd.conditions}'`.",
    ),
    "WaitingForTiKV": Reason(
        "TiDB, or the restart of TiDB's pods, needs TiKV first: a store that is Up, or the end of its own upgrade or "
        "scaling.",
        "It brings TiKV in order, then goes on by itself.",
        "Look at what TiKV waits for: `kubectl get tc NAME -o jsonpath='{.status.tikv.conditions}'`.",
    ),
    "WaitingForVolumes": Reason(
        "The cluster is restored from volume snapshots and the restore has not made TiKV's volumes yet.",
        "It starts TiKV when the annotation `tidb.pingcap.com/tikv-volumes-ready` is there.",
        "Look at the Restore object.",
    ),
    "WaitingForRestore": Reason(
        "`spec.recoveryMode` is true: PD and TiKV run for a restore.",
        "It starts TiDB when the field is false again.",
        "Let the restore end, or set the field to false.",
    ),
    "MissingSecret": Reason(
        "`spec.tidb.tlsClient.enabled` needs a Secret that does not exist, or lacks `tls.crt` or `tls.key`.",
        "It makes no TiDB pods: they could not start. It looks again regularly.",
        "Make the Secret that the message names.",
    ),
    "PodsNotReady": Reason(
        "Fewer pods are Ready than wanted. The message names those that are missing and what Kubernetes says of them.",
        "It waits for Kubernetes to start them. A pod command waits until the other pods are Ready.",
        f"{_LOOK_AT_PODS} After a wrong image or a wrong configuration: correct the spec, broken pods come first.",
    ),
    "PDNotReady": Reason(
        "No PD pod is Ready, so nobody can be asked about members and stores.",
        "It waits. Nothing that needs PD's word is decided.",
        _LOOK_AT_PODS,
    ),
    "PDNotAnswering": Reason(
        "A PD that has never answered before does not answer yet.",
        "It asks again; TiKV waits.",
        f"Nothing for the first minute. Later: {_LOOK_AT_PD}",
    ),
    "NotBootstrapped": Reason(
        "PD runs and no TiKV has registered with it yet.",
        "It waits for the first store.",
        "If it stays: `kubectl logs POD -c tikv`.",
    ),
    "StoresNotUp": Reason(
        "A TiKV store is not Up, and what comes next needs all of them: a restart of another TiKV pod, an eviction, a "
        "replacement. The message names the stores.",
        "It waits until they are Up: with a second store away, data could not be read.",
        "Bring the store back. Only for a restart, and if you know better: "
        '`kubectl annotate tc NAME tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade="false"`.',
    ),
    "OrphanPod": Reason(
        "Pods waited for volume claims that were deleted.",
        "It has deleted those pods; the StatefulSet makes them and their claims anew.",
        _NOTHING,
    ),
}

_PD_AND_STORES: Mapping[str, Reason] = {
    "PDUnreachable": Reason(
        "PD answered before and does not now, or answers with an error.",
        "It asks again with growing pauses. Nothing that needs PD's word is decided; what runs goes on running.",
        _LOOK_AT_PD,
    ),
    "PDUnknown": Reason(
        "PD must tell its members before its pods are restarted or scaled, and it does not.",
        "It leaves PD's pods alone until PD answers. Pods that are broken are restarted all the same.",
        f'{_LOOK_AT_PD} Last resort, all at once: `kubectl annotate tc NAME tidb.pingcap.com/force-upgrade="true"`.',
    ),
    "StoresUnknown": Reason(
        "PD must tell TiKV's stores before TiKV is restarted or scaled, and it does not, or tells less than it did.",
        "It leaves TiKV's pods alone until PD tells them.",
        _LOOK_AT_PD,
    ),
    "StoreUnknown": Reason(
        "PD tells no store, or more than one, at the address of the pod that carries a command.",
        "It does not carry out the command; it looks again.",
        "`pd-ctl store`: remove what should not be there, or take the annotation off the pod.",
    ),
    "StoreNotUp": Reason(
        "The store of the pod that carries `replace-volume` is neither Up nor Offline.",
        "It looks again with growing pauses.",
        "Bring the store Up first, or let failover replace it.",
    ),
    "DataPlaneUnreachable": Reason(
        "PD or a server gave no answer in the middle of a rolling restart.",
        "The restart holds where it is; it asks again with growing pauses.",
        _LOOK_AT_PD,
    ),
    "BadTLS": Reason(
        "The Secret `NAME-cluster-client-secret` lacks a certificate, a key or a CA, or they don't fit.",
        "It asks nobody in the cluster until that is put right; what runs goes on running.",
        "Put right the Secret that the message names.",
    ),
    "ForeignPDCluster": Reason(
        "PD answers with another cluster id than this cluster has: it started on empty or on somebody else's volumes.",
        "Nothing is written for this cluster.",
        "Bring back PD's own volumes. To give the old data up: delete the TidbCluster and make it anew.",
    ),
    "ForeignPD": Reason(
        "PD answers with another cluster id than this cluster has, so commands on pods are not followed.",
        "Nothing is written for this cluster.",
        "See [ForeignPDCluster](ForeignPDCluster.md).",
    ),
}

_RESTARTING: Mapping[str, Reason] = {
    "RollingUpdate": Reason(
        "Pods are restarted one after another, from the highest ordinal down. The message says which one, or what it "
        "waits for.",
        "It goes on when the pods above are Ready and serve, and this one has let go of leaders.",
        "Nothing. If a pod does not get Ready: `kubectl describe pod`, then correct the spec; the pods that the wrong "
        "spec broke are replaced first.",
    ),
    "Scaling": Reason(
        "The pods have a new template and the component is being scaled.",
        "It scales first, then restarts the pods.",
        _PATIENCE,
    ),
    "OnDelete": Reason(
        "`statefulSetUpdateStrategy` is `OnDelete`: pods get the new revision when you delete them.",
        "It does not restart pods; it ends the upgrade when all of them run the new revision.",
        "`kubectl delete pod` one by one, highest ordinal first, each when the one before is Ready.",
    ),
    "ForcedUpgrade": Reason(
        "PD does not answer and you asked for force, or it has one member: its pods are restarted all at once.",
        "It restarts them without looking at quorum or leader.",
        "Take the annotation off afterwards: `kubectl annotate tc NAME tidb.pingcap.com/force-upgrade-`.",
    ),
    "PDQuorum": Reason(
        "Without the pod that is next, PD would have no quorum of healthy members.",
        "It waits until the others are healthy. With two members that can never be: then it needs you.",
        "Bring back the member that the message names. With two members: scale PD to 3, or accept a short outage with "
        '`kubectl annotate tc NAME tidb.pingcap.com/pd-check-quorum-before-upgrade="false"`.',
    ),
    "PDLoading": Reason(
        "A PD member was restarted and has not loaded all regions yet.",
        "It waits before the next one is restarted.",
        _PATIENCE,
    ),
    "TransferringPDLeader": Reason(
        "The pod that is next leads PD.",
        "It has asked PD for another leader and waits until there is one.",
        _PATIENCE,
    ),
    "EvictingLeaders": Reason(
        "Region leaders move away from a TiKV store before its pod is restarted, or because you said so by annotation.",
        "It waits until none is left, at most `spec.tikv.evictLeaderTimeout` for its own restarts.",
        "Nothing. A shorter `evictLeaderTimeout` takes effect at once. It never ends with a single store, or with "
        "schedulers of your own that bring leaders back: `pd-ctl scheduler show`.",
    ),
    "LeadersComingBack": Reason(
        "A TiKV pod was restarted and leads fewer regions than before.",
        "It waits until two thirds are back, at most `spec.tikv.waitLeaderTransferBackTimeout`.",
        _PATIENCE,
    ),
    "DDLPaused": Reason(
        "TiDB is being upgraded to another version and DDL is paused (smooth upgrade).",
        "It lets DDL go on when all servers run the new version and are healthy.",
        "Nothing. `ADMIN SHOW DDL JOBS` shows the paused jobs.",
    ),
    "ResumingDDL": Reason(
        "Another upgrade of TiDB began before the one before it had ended.",
        "It ends the pause of the first before it begins that of the second.",
        _PATIENCE,
    ),
}

_SCALING: Mapping[str, Reason] = {
    "ScalingOut": Reason(
        "Pods are added.",
        "It adds the next when those before exist; TiKV and TiDB as many at a time as "
        "`scalePolicy.scaleOutParallelism`.",
        "Nothing. A pod that stays Pending: `kubectl describe pod`.",
    ),
    "ScalingIn": Reason(
        "Pods are removed, highest ordinals first. A TiKV store moves its data away first, and the message tells how "
        "many regions are left; a PD member hands over and leaves.",
        "It removes a pod when PD knows its store as Tombstone, or has no such member. Its volumes stay.",
        "Nothing; with much data this takes hours. Raise the replicas again to take it back: a store that is still "
        "Offline stays, and keeps its data.",
    ),
    "FailedScaleIn": Reason(
        "The scale-in would lose data, or what depends on PD. The message says why.",
        "It removes nothing. What was begun of it is taken back.",
        "Raise the replicas again. To go on: lower PD's `max-replicas` first, or remove what the message names.",
    ),
    "StalePVC": Reason(
        "A new pod would start on the volume claim of an earlier one.",
        "A claim that a scale-in left is deleted first, and waited for. One that nobody has given up stays.",
        "If `Progressing` is False: look at the data of the claim that the message names, then "
        "`kubectl delete pvc CLAIM`.",
    ),
}

_VOLUMES: Mapping[str, Reason] = {
    "GrowingVolumes": Reason(
        "Volume claims ask for more storage, and the storage provider has not given it to all yet.",
        "It waits; then it makes the StatefulSet again with the new size. No pod restarts.",
        "Nothing. If it stays: `kubectl describe pvc CLAIM` tells what the provider says.",
    ),
    "VolumeCantChange": Reason(
        "A volume can't be as the spec wants it: smaller, of another class, or of a class that can't expand.",
        "It leaves the volumes of that component as they are.",
        "Set the size or class back to what the message says. To have the volumes made anew, pod by pod, data moving "
        "away first: `spec.enablePVCReplace: true`. To allow growth: `kubectl patch storageclass CLASS -p "
        "'{\"allowVolumeExpansion\":true}'`.",
    ),
    "Recreating": Reason(
        "A StatefulSet was deleted, its pods staying, and is made again.",
        "It makes it with the template that the pods run, so that none restarts.",
        _PATIENCE,
    ),
}

_SUSPENDING: Mapping[str, Reason] = {
    "Suspending": Reason(
        "`suspendAction.suspendStatefulSet` is true and pods are still there: TiDB goes before TiKV before PD, and "
        "none in the middle of an upgrade.",
        "It finishes what is under way, then removes the StatefulSets.",
        "Nothing; set the field to false to take it back.",
    ),
    "Suspended": Reason(
        "No pods run, because the spec wants it so. Volumes, configuration and Services are there. The condition "
        "`Ready` is False.",
        "It waits until you resume.",
        "To resume: set `spec.suspendAction.suspendStatefulSet` to false; see operations.md.",
    ),
}

_FAILING_OVER: Mapping[str, Reason] = {
    "PDMemberUnhealthy": Reason(
        "A PD member is lost: PD calls it unhealthy, and Kubernetes says that its pod or node is not Ready.",
        "It replaces the member at the time that the message tells, unless it comes back.",
        "Bring pod or node back before that time to keep its data in use.",
    ),
    "TiKVStoreDown": Reason(
        "A TiKV store is lost: PD calls it Down, and Kubernetes says that its pod or node is not Ready.",
        "It starts another pod at the time that the message tells, unless the store comes back.",
        "Bring pod or node back before that time to spare the copying of its data.",
    ),
    "TiDBMemberUnhealthy": Reason(
        "A TiDB server is lost: it does not answer, and Kubernetes says that its pod or node is not Ready.",
        "It starts another pod at the time that the message tells, unless the server comes back.",
        "`kubectl describe pod` and `kubectl logs` of the one that the message names.",
    ),
    "PDFailover": Reason(
        "A lost PD member is being replaced: recorded in `status.pd.failureMembers`, removed from PD, its volumes "
        "deleted, one more pod started.",
        "One at a time, and only with a majority of healthy members.",
        "Nothing. It ends by itself when all that the spec asks for are healthy.",
    ),
    "TiKVFailover": Reason(
        "A lost TiKV store is being replaced: recorded in `status.tikv.failureStores`, one more pod started.",
        "PD copies the lost data to the others. The lost pod and its volumes stay.",
        "Repair the lost pod's node, or give it up; then recover, see operations.md.",
    ),
    "TiDBFailover": Reason(
        "A lost TiDB server is being replaced: recorded in `status.tidb.failureMembers`, one more pod started.",
        "The extra pod goes when the lost one answers again.",
        "Repair the lost pod.",
    ),
    "PDFailedOver": Reason(
        "A PD member was lost and another serves instead.",
        "The extra pod goes when all that the spec asks for are healthy again.",
        "Look why the pod that the message names is not back.",
    ),
    "TiKVFailedOver": Reason(
        "A TiKV store was lost and another serves instead. This lasts until you say that the lost one is back.",
        "Nothing more: the extra pods stay.",
        "Repair the lost pod; when its store is Up, recover: `spec.tikv.recoverFailover: true`, see operations.md.",
    ),
    "TiDBFailedOver": Reason(
        "A TiDB server was lost and another serves instead.",
        "The extra pod goes when the lost one answers again.",
        "Look why the pod that the message names is not back.",
    ),
    "FailoverLimit": Reason(
        "As many were replaced as `maxFailoverCount` allows, and one more is lost.",
        "It replaces no more. The cluster may be close to losing data: one more loss may be one too many.",
        "Bring the lost ones back now. If they are gone for good, raise `maxFailoverCount` of the component.",
    ),
    "PDQuorumLost": Reason(
        "Half or more of PD's members are lost. PD has no leader; the database stands still.",
        "It replaces nobody: without a quorum that would lose PD's data.",
        "Bring back pods, nodes or volumes until a majority runs. If they are gone for good, recover PD with "
        "`pd-recover`.",
    ),
    "HostDown": Reason(
        "The machine of a lost pod is down (only with `-detect-node-failure`).",
        'With the annotation `app.kubernetes.io/auto-failure-recovery: "true"` it deletes the pod by force, gives its '
        "successor 10 minutes, then gives up its data and starts it on new volumes.",
        "`kubectl cordon` the node. Without the annotation: decide by yourself.",
    ),
}

_COMMANDS: Mapping[str, Reason] = {
    "AnotherPodRestarting": Reason(
        "Another TiKV pod is being evicted and restarted by command.",
        "It begins with this one when that one is back.",
        _PATIENCE,
    ),
    "PDBusy": Reason(
        "A PD pod is told to hand over while PD is upgraded, scaled or suspended.",
        "It looks again each minute.",
        _PATIENCE,
    ),
    "ComponentBusy": Reason(
        "A pod carries a command, and a component that it depends on is being upgraded or scaled.",
        "It looks again each minute.",
        _PATIENCE,
    ),
    "PodChanged": Reason("The pod that carries a command has just changed.", _AT_ONCE, _PATIENCE),
    "ReplacingVolume": Reason(
        "A pod carries `tidb.pingcap.com/replace-volume`, from you, or from the operator where `spec.enablePVCReplace` "
        "lets it: its member or store leaves PD, then its claims and itself are deleted, and come back empty.",
        "It goes on when PD has let go of the member, or moved all data of the store.",
        "Nothing. To take it back before the store is Tombstone: remove the annotation, and put the store Up in PD.",
    ),
    "TooFewStores": Reason(
        "Without the store of a pod fewer TiKV stores would be Up than PD keeps replicas.",
        "It does not take the store away. It looks again each minute.",
        "`kubectl patch tc` with one more `spec.tikv.replicas` first.",
    ),
    "NoSuccessor": Reason(
        "A PD pod is told to hand over the leadership, and no other member is healthy and not told the same.",
        "It leaves the leader where it is, and looks again each minute.",
        "Bring another member back, or take the annotation off one of the pods.",
    ),
    "NoOtherStore": Reason(
        "The leaders of the only TiKV store can't move anywhere.",
        "It leaves them where they are.",
        "Take the annotation off, or add a store.",
    ),
    "PodRestarted": Reason(
        "The pod was deleted as it was told; its StatefulSet brings it back.", "It is done.", _NOTHING
    ),
    "LeaderEvictionEnded": Reason(
        "Leaders may come back to a TiKV pod: the annotation is gone, or the pod is back.",
        "It has removed the scheduler from PD.",
        _NOTHING,
    ),
    "EvictLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/tikv-evict-leader-expiration-time` is over, or is no RFC 3339 time with a zone.",
        "It has taken the command off the pod.",
        "Annotate again if leaders should stay away.",
    ),
    "LeaderTransferred": Reason("The pod does not lead PD while another member can.", "It is done.", _NOTHING),
    "TransferLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/pd-evict-leader-expiration-time` is over, or is no RFC 3339 time with a zone.",
        "It has taken the command off the pod.",
        "Annotate again if the pod should not lead.",
    ),
}

_PASSING: Mapping[str, Reason] = {
    "Conflict": Reason("Somebody else wrote the same object at the same moment.", _AT_ONCE, _PATIENCE),
    "SpecChanged": Reason(
        "Before something is destroyed the spec is read live, and it was newer than the operator's view of it.",
        _AT_ONCE,
        _PATIENCE,
    ),
    "CacheOutdated": Reason("The operator's view does not show its StatefulSet yet.", _AT_ONCE, _PATIENCE),
    "ClusterDeleted": Reason(
        "The TidbCluster was deleted in the middle of a reconcile.",
        "It writes nothing more; Kubernetes removes what belongs to it. Volumes stay.",
        _NOTHING,
    ),
}


def _kubernetes(means: str, you: str = "If it stays: look at the API server and at the operator's log.") -> Reason:
    return Reason(means, "The stage that met it is tried again with growing pauses; the others go on.", you)


_RIGHTS = (
    "Compare the operator's rights with manifests/operator/rbac-cluster.yaml; the message names verb and resource."
)

_ERRORS: Mapping[str, Reason] = {
    "ApiError": _kubernetes("The API server, or a component, refused a request. The message has its words."),
    "BadRequest": _kubernetes("The API server found a request malformed."),
    "Unauthorized": _kubernetes("The API server does not accept the operator's credential.", _RIGHTS),
    "Forbidden": _kubernetes("The operator lacks a right.", _RIGHTS),
    "NotFound": _kubernetes("Something was gone when it was needed. The message names it."),
    "MethodNotAllowed": _kubernetes("The API server does not offer a verb on a resource."),
    "AlreadyExists": _kubernetes(
        "Something of the name that is needed exists already.", "If it stays: look whose it is; delete or rename it."
    ),
    "Expired": _kubernetes("A list was too old to go on with.", _PATIENCE),
    "Invalid": _kubernetes(
        "The API server refused an object. The message names the fields.",
        "Correct what the message names in the spec; quotas and admission webhooks answer so, too.",
    ),
    "TooManyRequests": _kubernetes("The API server sheds load.", "Look who overloads it."),
    "InternalError": _kubernetes(
        "The API server, or a webhook that it asks, failed. Where the message says `internal error`, the "
        "operator itself has a defect, and the message names the exception.",
        "If it stays: report a defect of the operator together with the stack trace in its log; for the API server, "
        "look at its log and at those of its webhooks.",
    ),
    "ServerTimeout": _kubernetes("The API server gave up waiting, perhaps for etcd."),
    "TransportError": _kubernetes("A request to the API server got no answer."),
    "ConnectionRefused": _kubernetes("Nobody listens at the API server's address."),
    "ConnectionLost": _kubernetes("The connection to the API server ended before its answer."),
    "RequestTimeout": _kubernetes("The API server did not answer in time."),
    "TlsError": _kubernetes("The TLS handshake with the API server failed."),
    "CredentialMissing": _kubernetes("The operator's own credential can't be had.", _RIGHTS),
    "TransportClosed": _kubernetes("The operator is shutting down.", _NOTHING),
    "ForeignOwner": _kubernetes(
        "An object of the name that is needed belongs to somebody else. The message names both.",
        "Delete or rename that object, or the TidbCluster.",
    ),
    "DataPlaneError": _kubernetes("A call to PD, TiKV or TiDB did not succeed.", _LOOK_AT_PD),
    "Unavailable": _kubernetes("PD, TiKV or TiDB gave no answer. The message names the address.", _LOOK_AT_PD),
    "BadTlsMaterial": _kubernetes(
        "The Secret with the operator's client certificate can't be used.",
        "See [BadTLS](BadTLS.md).",
    ),
    "MalformedAnswer": _kubernetes(
        "PD, TiKV or TiDB answered with something that this version does not understand.",
        "Compare the version of the component with those that the operator knows; report it.",
    ),
}

TOPICS: Mapping[str, Mapping[str, Reason]] = {
    "Does it serve": _READY,
    "The spec": _SPEC,
    "Starting": _STARTING,
    "PD and the stores don't tell": _PD_AND_STORES,
    "Restarting pods": _RESTARTING,
    "Scaling": _SCALING,
    "Volumes": _VOLUMES,
    "Suspending": _SUSPENDING,
    "Failover": _FAILING_OVER,
    "Commands on pods": _COMMANDS,
    "Passing in a moment": _PASSING,
    "Errors": _ERRORS,
}
"""Topic → reason → what it means."""

REASONS: Mapping[str, Reason] = {name: reason for topic in TOPICS.values() for name, reason in topic.items()}
"""Reason → what it means."""
