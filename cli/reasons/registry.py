"""Every reason that a condition of a TidbCluster or a DMCluster may have, and every outcome of a command on a pod.

A test holds this list and the code to each other.
"""

from collections.abc import Mapping

from cli.reasons.commands import COMMANDS
from cli.reasons.dm import OF_DM
from cli.reasons.errors import ERRORS
from cli.reasons.failover import FAILING_OVER
from cli.reasons.jobs import OF_JOBS
from cli.reasons.other_resources import MONITORS, OTHER_RESOURCES
from cli.reasons.outages import OUTAGES
from cli.reasons.reason import (
    AT_ONCE,
    LOOK_AT_COMPONENT,
    LOOK_AT_PD,
    LOOK_AT_PODS,
    NOTHING,
    NOTHING_YET,
    TRANSIENT,
    WITH_THE_CACHE,
    Reason,
)


def _other_volumes(field: str, instead: str = "") -> Reason:
    """The reason for a component that would lose a volume with data, or mounts one that cannot exist."""
    return Reason(
        "The pods would lose a volume that may hold data, or lack a volume or its storage class.",
        "It leaves these pods as they are.",
        f"Do what the message says, or restore `{field}` and the mounts. {instead}".strip(),
    )


_READY: Mapping[str, Reason] = {
    "Ready": Reason(
        "All requested replicas are running and serving.",
        "It watches. A part of the message after a semicolon says what it is working on.",
        NOTHING,
    ),
    "StatefulSetNotUpToDate": Reason(
        "A rolling restart is in progress: some pods do not run the newest revision yet. The cluster usually serves.",
        "It restarts the pods one by one, PD before TiFlash before TiKV before TiDB. The rest of the message says "
        "what it waits for.",
        "Nothing. If it does not end, the condition `Progressing` says why.",
    ),
    "PDUnhealthy": Reason(
        "Not all requested PD members are healthy, or their number differs from the spec. The cluster serves while "
        "more than half of them are healthy.",
        "It waits, replaces a member that is lost for the failover period, and never removes one that the quorum "
        "needs.",
        LOOK_AT_PODS,
    ),
    "TiKVStoreNotUp": Reason(
        "Not all requested TiKV stores are Up, or their number differs from the spec. Data is available while at most "
        "one replica of each region is lost.",
        "It waits. It replaces stores that PD reports as Down after the failover period.",
        "`kubectl get tc NAME -o jsonpath='{.status.tikv.stores}'` shows their states; look at the pod of any store "
        "that is not Up.",
    ),
    "TiDBUnhealthy": Reason(
        "Not all TiDB servers answer on their status port, or their number differs from the spec. The others serve.",
        "It waits. It starts a substitute for a server that has not answered for the failover period.",
        "`kubectl logs POD -c tidb` of the servers that are unhealthy in `status.tidb.members`.",
    ),
    "TiFlashStoreNotUp": Reason(
        "Not all requested TiFlash stores are Up, or their number differs from the spec. Tables that have another "
        "replica, or no replica on TiFlash, are read as before; TiKV's data is not affected.",
        "It waits. It replaces stores that PD reports as Down after the failover period.",
        "`kubectl get tc NAME -o jsonpath='{.status.tiflash.stores}'` shows their states; look at the pod of any "
        "store that is not Up.",
    ),
    "TiCDCCaptureNotReady": Reason(
        "Not all captures of TiCDC answer on their port, or their number differs from the spec. The others replicate.",
        "It waits, and restarts no other capture meanwhile.",
        "`kubectl logs POD` of the captures that are not `ready` in `status.ticdc.captures`.",
    ),
    "TiCIMetaUnhealthy": Reason("Not all meta servers of TiCI are Ready.", "It waits.", LOOK_AT_PODS),
    "TiCIWorkerUnhealthy": Reason("Not all workers of TiCI are Ready.", "It waits.", LOOK_AT_PODS),
    "WaitingForTiCI": Reason("The first pods of TiFlash wait for TiCI.", "It waits.", LOOK_AT_PODS),
    "WaitingForBucketKeys": Reason(
        "The Secret of `spec.tici.s3.secretName` is missing, or lacks `access_key` or `secret_key`.",
        "It waits for them.",
        "Create it.",
    ),
    "CreatingChangefeed": Reason("TiCDC is creating TiCI's changefeed.", "It checks again.", NOTHING),
    "ChangingChangefeed": Reason(
        "TiCI's changefeed is getting another sink or other keys.", "It pauses the changefeed and resumes it.", NOTHING
    ),
    "ChangefeedNotNormal": Reason(
        "The changefeed of TiCI failed or is paused. Full-text indexes lack new changes.",
        "It reports TiCDC's error in `status.tici`.",
        "Remove the cause of the error, then resume the changefeed.",
    ),
    "ChangefeedUnknown": Reason(
        "TiCDC does not answer about the changefeed of TiCI, or rejects a request.",
        "It asks again.",
        "Read TiCDC's error. If the last checkpoint is too old, create the changefeed with `cdc cli`.",
    ),
    "HandingOver": Reason(
        "A capture of TiCDC gives up ownership and its tables before its pod is restarted or removed.",
        "It waits until no table is left, but no longer than `spec.ticdc.gracefulShutdownTimeout` (event "
        "`GracefulShutdownTimeout`). Then it restarts or removes the pod.",
        "Nothing. If the tables do not move, look at the log of the capture that is the owner in "
        "`status.ticdc.captures`.",
    ),
    "MembersNotReady": Reason(
        "Fewer members of a component are healthy than the spec requests.",
        "It waits for them, and checks them less and less often.",
        "Read the logs of the component's pods.",
    ),
    "TSOUnhealthy": Reason(
        "PD lists fewer members of the microservice tso than `spec.pdms` requests, or tso does not serve.",
        "It waits for them.",
        "Read the logs of its pods, and `status.pdms.tso.members`.",
    ),
    "SchedulingUnhealthy": Reason(
        "PD lists fewer members of the microservice scheduling than `spec.pdms` requests, or does not list them.",
        "It waits for them.",
        "Read the logs of its pods, and `status.pdms.scheduling.members`.",
    ),
    "PasswordNotSet": Reason(
        "The operator could not set the random password for root that `spec.tidb.initializer.createPassword` requests.",
        "It retries; until then root has no password. Everything else continues.",
        "Check that the operator reaches TiDB's SQL port at the address in the message, and that TiDB accepts root "
        "from there. With `tidb.tlsClient`, the server's certificate must cover that name.",
    ),
    "PumpUnhealthy": Reason(
        "Fewer Pump nodes are online in PD than `spec.pump.replicas` requests.",
        "It waits. TiDB uses the online nodes; while it writes binlogs, it cannot commit without any.",
        "Read the logs of the Pump pods, and `status.pump.members`.",
    ),
    "TiProxyUnhealthy": Reason(
        "Not all TiProxies report through their API that they serve, or their number differs from the spec.",
        "It waits, and restarts no other TiProxy meanwhile.",
        "`kubectl logs POD` of the proxies that are unhealthy in `status.tiproxy.members`.",
    ),
    "AcrossKubernetes": Reason(
        "`spec.acrossK8s` is true, and the spec contains a component that finds the others within one Kubernetes only.",
        "It does not start that component, and manages the others.",
        "Remove the component that the message names, or set `spec.acrossK8s` to false.",
    ),
}

_SPEC: Mapping[str, Reason] = {
    "Done": Reason("The cluster matches its spec.", "It watches.", NOTHING),
    "InvalidSpec": Reason(
        "The spec contains a value that is not allowed, or changes one that cannot be changed. The message names each "
        "field.",
        "It updates the status and recreates deleted objects as the last valid spec wanted them, unless the "
        "controller-manager was restarted since. No rolling restart, scaling or failover begins or continues.",
        "Correct the fields that the message names and apply the manifest again.",
    ),
    "InstanceTaken": Reason(
        "Another TidbCluster of the namespace has the same instance name: the label "
        "`app.kubernetes.io/instance`, or without one the name. Both would take the other's pods for their "
        "own. The name belongs to the TidbCluster that runs or has data under it, else to the older one. "
        "What a deleted TidbCluster has left holds the name, too.",
        "It makes no changes for this TidbCluster, and continues as soon as the name is free.",
        "Give this TidbCluster another label `app.kubernetes.io/instance`. Argo CD sets it: let it track by annotation "
        "(`application.resourceTrackingMethod: annotation`), or choose another label for it "
        "(`application.instanceLabelKey`). The selectors of a cluster that runs cannot change. If the other one is "
        "gone for good, delete the volume claims that the message names.",
    ),
    "AnotherOperator": Reason(
        "The reason of the condition `OperatorConflict`: operators in several namespaces manage this cluster, so that "
        "each holds a Lease of its own and leads. The message names their Leases.",
        "It continues. The operators overwrite each other's changes.",
        "Stop all but one of them (`kubectl scale deploy NAME -n NAMESPACE --replicas=0`), or give each clusters of "
        "its own with `-selector` or `-cluster-scoped=false`. An operator that manages one namespace cannot see those "
        "in others; one of v1.6 does not say which clusters it manages and is taken to manage all, unless this one "
        "has a `-selector`. Half a minute to a minute later the condition is False (`OneOperator`).",
    ),
    "OneOperator": Reason(
        "The reason of the condition `OperatorConflict` when it is False: other operators managed this cluster, too, "
        "and do so no longer.",
        "It manages the cluster alone.",
        NOTHING,
    ),
    "ComponentRemoved": Reason(
        "The spec no longer has a component whose StatefulSet still has replicas. Removing one from the spec deletes "
        "nothing, as in v1.6.",
        "It leaves the pods of that component as they are. It restarts no pod of the cluster for a change of the "
        "spec, since pods of one component mention the others. Everything else continues.",
        "Restore the component as it was: nothing is restarted. To remove TiDB, set its `replicas` to 0, wait until "
        "its pods are gone, then remove it. PD and TiKV hold the data: to remove them, delete the TidbCluster.",
    ),
    "FixedField": Reason(
        "The spec changes a field of a StatefulSet that Kubernetes does not let anyone change. The message names it.",
        "It ignores that part and manages everything else.",
        "Revert the change.",
    ),
    "Paused": Reason(
        "`spec.paused` is true.",
        "It observes the cluster and keeps the status up to date. It only writes the ids of pods and volumes "
        "as labels.",
        '`kubectl patch tc NAME --type=merge -p \'{"spec":{"paused":false}}\'`. All edits made meanwhile are '
        "rolled out together.",
    ),
    "FailedUpdatePDSTS": _other_volumes("spec.pd.storageVolumes"),
    "FailedUpdateTiFlashSTS": _other_volumes(
        "spec.tiflash.storageClaims", instead="To use fewer claims, scale TiFlash in to 0 and out again."
    ),
    "FailedUpdateTiKVSTS": _other_volumes("spec.tikv.storageVolumes"),
    "FailedUpdateTiProxySTS": _other_volumes("spec.tiproxy.storageVolumes"),
    "FailedUpdateTiCDCSTS": _other_volumes("spec.ticdc.storageVolumes"),
    "FailedUpdateTiDBSTS": _other_volumes("spec.tidb.storageVolumes"),
    "FailedUpdateTSOSTS": _other_volumes("spec.pdms[].storageVolumes"),
    "FailedUpdateSchedulingSTS": _other_volumes("spec.pdms[].storageVolumes"),
    "FailedUpdateTiCIMetaSTS": _other_volumes("spec.tici.meta.storageVolumes"),
    "FailedUpdateTiCIWorkerSTS": _other_volumes("spec.tici.worker.storageVolumes"),
    "FailedUpdatePumpSTS": _other_volumes("spec.pump.additionalVolumes"),
}

_STARTING: Mapping[str, Reason] = {
    "ForeignEdit": Reason(
        "Another client has changed a field of a StatefulSet that only the operator writes, such as its "
        "pod template. The message names the first field.",
        "It has reverted the change. Pods with the foreign template restart one by one; the others stay.",
        "Change the TidbCluster instead. Restart pods with `kubectl tidb restart`, not `kubectl rollout restart`. If "
        "it recurs, find the writer: `kubectl get sts NAME --show-managed-fields -o yaml`.",
    ),
    "Contested": Reason(
        "Another controller, or an admission webhook, reverts each write of the operator to an object other than a "
        "StatefulSet, e.g. a Service or a pod's labels. The message names the first field. Or another client deletes "
        "an object each time the operator creates it.",
        "It retries three times immediately, then once a minute. Everything else continues.",
        "Find the writer: `kubectl get KIND NAME --show-managed-fields -o yaml`, `kubectl get "
        "mutatingwebhookconfigurations`. Exclude the cluster's objects there, or put the other value into the spec.",
    ),
    "Creating": Reason("A StatefulSet was just created.", "It waits for the first pods.", TRANSIENT),
    "WaitingForPD": Reason(
        "TiKV, TiFlash or the restart of another component waits for a quorum of healthy PD members, or "
        "for the end of PD's own upgrade or scaling.",
        "It continues when PD is done.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForTiFlash": Reason(
        "The restart of TiKV's or TiDB's pods waits for TiFlash's own upgrade or scaling: an older TiFlash "
        "may not understand TiKV.",
        "It continues when TiFlash is done.",
        LOOK_AT_COMPONENT,
    ),
    "PlacementRulesOff": Reason(
        "PD does not place replicas by rules, or does not report whether it does. Without rules it refuses TiFlash's "
        "stores.",
        "It switches the rules on as soon as PD answers, then starts TiFlash.",
        "Read PD's error in the message.",
    ),
    "WaitingForTiKV": Reason(
        "TiDB or TiCDC, or the restart of their pods, waits for a TiKV store that is Up, or for the end of "
        "TiKV's own upgrade or scaling.",
        "It continues when TiKV is done.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForTiDB": Reason(
        "The restart of TiCDC's or TiCI's pods waits for TiDB's upgrade or scaling. Or TiCI's first pods wait until "
        "all of TiDB is healthy. Or TiDB refuses its new version, and the other components keep theirs, too.",
        "It continues when TiDB is done, or can be upgraded.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForTiCDC": Reason(
        "The restart of TiCI's pods waits for TiCDC's upgrade or scaling. Or TiCI's changefeed needs a capture that "
        "is up.",
        "It continues when TiCDC is done.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForTiCIMeta": Reason(
        "The restart of TiCI's workers waits for the upgrade or scaling of its meta servers.",
        "It continues when they are done.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForPump": Reason(
        "TiDB writes binlogs, and would end at once while no Pump node is online. Or Pump is being restarted or "
        "scaled, which precedes a restart of TiDB. Or Pump refuses its new version, and the other components keep "
        "theirs, too.",
        "It creates or restarts TiDB's pods afterwards.",
        "Read the condition of Pump. A cluster without binlogs needs no Pump.",
    ),
    "WaitingForTSO": Reason(
        "PD is in microservice mode, and no member of tso gives timestamps yet: TiKV could not start.",
        "It creates TiKV's pods afterwards.",
        LOOK_AT_COMPONENT,
    ),
    "WaitingForScheduling": Reason(
        "PD is in microservice mode, and PD lists no member of scheduling yet.",
        "It creates TiKV's pods afterwards.",
        LOOK_AT_COMPONENT,
    ),
    "PDWithoutMicroservices": Reason(
        "`spec.pd.mode` is `ms`, and the PD that answers was started without it.",
        "It waits until PD's pods have been restarted. With `configUpdateStrategy: InPlace` they are not restarted by "
        "themselves.",
        "Set `spec.pd.configUpdateStrategy` to `RollingUpdate`, or restart PD's pods with the annotation "
        "`tidb.pingcap.com/restartedAt` in `spec.pd.annotations`.",
    ),
    "NoPrimary": Reason(
        "No member of tso is its primary, so no server of the cluster gets a timestamp.",
        "It waits: the members elect one within seconds. It restarts and removes none of them.",
        "Read the logs of tso's pods, and check that they reach PD.",
    ),
    "PDMembersUnknown": Reason(
        "PD does not list the members of a microservice, which the operator needs before it restarts their pods.",
        "It leaves the pods as they are until PD lists them.",
        LOOK_AT_PD,
    ),
    "WaitingForVolumes": Reason(
        "The cluster is being restored from volume snapshots, and the restore has not created TiKV's volumes yet.",
        "It starts TiKV once the annotation `tidb.pingcap.com/tikv-volumes-ready` is set, and TiFlash when PD has lost "
        "the mark of the restore as well.",
        "Look at the Restore object.",
    ),
    "WaitingForRestore": Reason(
        "`spec.recoveryMode` is true: PD and TiKV are running for a restore.",
        "It starts TiDB once the field is false.",
        "Let the restore finish, or set the field to false.",
    ),
    "PeerURLOutdated": Reason(
        "You changed `spec.tlsCluster.enabled` while a single PD or DM-master ran. It had joined under a URL of the "
        "other scheme, `http` or `https`, which etcd keeps: another member could not reach it.",
        "It adds no member. The running member stays.",
        "Run the command in the message in the member's pod, or in one with `etcdctl` and its certificates.",
    ),
    "MissingSecret": Reason(
        "`spec.tidb.tlsClient.enabled` requires a Secret that does not exist, or that lacks `tls.crt` or `tls.key`.",
        "It creates no TiDB pods, which could not start, and keeps checking.",
        "Create the Secret that the message names.",
    ),
    "PodsNotReady": Reason(
        "Fewer pods are Ready than requested. The message names the missing ones and what Kubernetes reports about "
        "them.",
        "It waits for Kubernetes to start them. A pod command waits until the other pods are Ready.",
        f"{LOOK_AT_PODS} After a wrong image or configuration: correct the spec; broken pods are replaced first.",
    ),
    "PDNotReady": Reason(
        "No PD pod is Ready, so members and stores are unknown.",
        "It waits. It makes no decision that depends on PD.",
        LOOK_AT_PODS,
    ),
    "NoPD": Reason(
        "The cluster has no PD, neither its own (`spec.pd`) nor one in the cluster that `spec.cluster` names.",
        "It has created everything that does not depend on PD, and waits.",
        "Add `spec.pd`, or name a TidbCluster that has a PD in `spec.cluster`.",
    ),
    "NoSuchCluster": Reason(
        "`spec.cluster` names a TidbCluster that does not exist, so there is no PD to join or to use.",
        "It looks for that cluster every few seconds.",
        "Create the TidbCluster that `spec.cluster` names, or correct its name and namespace.",
    ),
    "PDNotAnswering": Reason(
        "A new PD, which has never answered before, does not answer yet.",
        "It retries; TiKV waits.",
        f"Nothing for the first minute. After that: {LOOK_AT_PD}",
    ),
    "NotBootstrapped": Reason(
        "PD is running, and no TiKV store has registered with it yet.",
        "It waits for the first store.",
        "If this persists: `kubectl logs POD -c tikv`.",
    ),
    "StoresNotUp": Reason(
        "The restart of another TiKV pod, an eviction or a replacement requires all stores to be Up, and the stores "
        "in the message are not Up or do not answer.",
        "It waits: with two stores down, data could become unreadable.",
        "Repair the store. Only for a restart, and if you are sure: "
        '`kubectl annotate tc NAME tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade="false"`.',
    ),
    "RegionsNotWhole": Reason(
        "All stores are Up, but PD reports regions with down or pending peers, which would have no quorum while the "
        "next TiKV pod restarts. The message names a region and the stores of these peers.",
        "It waits for at most 10 minutes, once before it moves leaders away and once before the restart. Then it "
        "restarts the pod, and the event `RegionQuorumTimeout` names a region.",
        "Nothing while snapshots arrive. For another limit, or `0s` for none: `kubectl annotate tc NAME "
        "tidb.pingcap.com/tikv-wait-for-region-quorum=1h`.",
    ),
    "OrphanPod": Reason(
        "Pods were waiting for volume claims that had been deleted.",
        "It has deleted those pods; the StatefulSet recreates them together with their claims.",
        NOTHING,
    ),
}

_PD_AND_STORES: Mapping[str, Reason] = {
    "PDUnreachable": Reason(
        "PD answered before, and now is silent or returns an error.",
        "It retries with increasing delays, and decides nothing that depends on PD. Running pods keep running.",
        LOOK_AT_PD,
    ),
    "PDUnknown": Reason(
        "PD does not report its members, which the operator needs before it restarts or scales PD.",
        "It leaves PD's pods alone until PD answers, except that it restarts a pod of which nothing runs. A running "
        "pod that is not Ready may vote.",
        f"{LOOK_AT_PD} As a last resort, restart all of them at once: `kubectl annotate tc NAME "
        'tidb.pingcap.com/force-upgrade="true"`.',
    ),
    "AddressNotUnderstood": Reason(
        "PD reports a member or a store that resembles a pod of this cluster, but at an address that its pods do not "
        "advertise. The message names it.",
        "It scales in, restarts and replaces nothing of PD and TiKV until it understands the address.",
        "Compare `pd-ctl member` and `pd-ctl store` with the pods. Correct the advertised address, or remove a "
        "member or store that no longer exists with `pd-ctl`.",
    ),
    "RemakingClaims": Reason(
        "Volume claims without a volume request another storage class, or more storage, than the spec.",
        "It deletes these claims, which hold no data, and the StatefulSet recreates them for the waiting pods. It "
        "keeps claims whose volumes will come with data, or that would be recreated unchanged: `VolumeCantChange`.",
        "Nothing. If the new claims stay Pending, too, `kubectl describe pvc` shows why.",
    ),
    "PumpNodesNotOnline": Reason(
        "The Pump pods are Ready, but not all of their nodes are online in PD.",
        "It restarts no other Pump pod meanwhile. TiDB uses the online nodes.",
        "Read the log of the pod in the message. A closing or offline node takes no more binlogs: scale Pump in to "
        "remove its pod.",
    ),
    "PumpNodesUnknown": Reason(
        "PD does not report the Pump nodes, which the operator needs before it scales Pump.",
        "It keeps the number of Pump pods until PD reports the nodes.",
        LOOK_AT_PD,
    ),
    "PumpUnreachable": Reason(
        "Pump is being scaled in, but the pod to remove does not answer. Drainers may not have read all its binlogs, "
        "which no other pod has.",
        "It keeps the pod, its volume and its node in PD, and asks again when the pod is Ready.",
        "Bring the pod back: `kubectl describe pod` and `kubectl logs --previous` show why it does not run. If it is "
        "lost and you can do without its binlogs, set its node to offline with `binlogctl`; then the operator "
        "removes the pod.",
    ),
    "StoresUnknown": Reason(
        "PD does not report the TiKV stores, lacks stores that it listed before, or lists them at other pods. The "
        "operator needs them before it restarts or scales TiKV.",
        "It leaves TiKV's pods alone until then, except pods of which nothing runs.",
        LOOK_AT_PD,
    ),
    "SchedulersUnknown": Reason(
        "PD's leader runs no schedulers, so evictions of leaders are unknown. A new leader loads them once the regions "
        "have reported.",
        "It restarts and removes no TiKV, and asks again soon.",
        "If it lasts: `pd-ctl scheduler add balance-leader-scheduler`.",
    ),
    "StoreUnknown": Reason(
        "PD reports no store, or more than one, at the address of the pod that carries a command.",
        "It retries the command.",
        "Run `pd-ctl store`: remove the store that should not be there, or remove the annotation from the pod.",
    ),
    "StoreNotUp": Reason(
        "The store of the pod that carries `replace-volume` is neither Up nor Offline.",
        "It retries with increasing delays.",
        "Repair the store first, or let failover replace it.",
    ),
    "DataPlaneUnreachable": Reason(
        "PD or a server did not answer in the middle of a rolling restart.",
        "It stops the rolling restart there, and retries with increasing delays.",
        LOOK_AT_PD,
    ),
    "KubernetesTooOld": Reason(
        "The spec asks for native sidecars: init containers with `restartPolicy: Always`, or a tailer with "
        "`useSidecar`. Kubernetes before 1.29 would wait for their end and start no pod.",
        "It keeps the pods as they are, and creates none.",
        "Remove `useSidecar` or `restartPolicy` until Kubernetes is upgraded.",
    ),
    "BadCertificate": Reason(
        "A Secret with a certificate is missing or incomplete, or its certificate has expired, is not valid yet, "
        "holds for other names, or is signed by an authority that the other components do not trust. The message "
        "names the Secret, its key, and the mistake.",
        "Running pods keep running. It rereads the Secrets every ten seconds while one is wrong.",
        "Correct the Secret; tls.md#renew-them says what needs a restart.",
    ),
    "BadTLS": Reason(
        "The Secret `NAME-cluster-client-secret` lacks a certificate, a key or a CA, or they do not match.",
        "It sends the cluster no requests. Running pods keep running.",
        "Correct the Secret.",
    ),
    "ForeignPDCluster": Reason(
        "The cluster id of PD is not this cluster's: PD was started on empty volumes, or on the volumes of "
        "another cluster. Without `spec.pd`, the TidbCluster that `spec.cluster` names was deleted and recreated.",
        "It makes no changes to this cluster, and adds no pods, which would join the other PD.",
        "Restore PD's own volumes, or correct `spec.cluster`. To abandon the old data, delete the volume claims of "
        "TiKV and set the annotation `tidb.pingcap.com/force-pd-bootstrap` of the TidbCluster to the old cluster id.",
    ),
    "ForeignPD": Reason(
        "The cluster id of PD is not this cluster's, so commands on pods are ignored.",
        "It makes no changes to this cluster.",
        "See `ForeignPDCluster`.",
    ),
}

_RESTARTING: Mapping[str, Reason] = {
    "RollingUpdate": Reason(
        "Pods are being restarted one by one, from the highest ordinal down. The message says which one is next, or "
        "what the operator waits for.",
        "It restarts the next pod when the pods above are Ready and serving, and the pod no longer leads anything.",
        "Nothing while it proceeds. After ten minutes at one step the reason becomes `RollingUpdateStuck`.",
    ),
    "RollingUpdateStuck": Reason(
        "A rolling restart has made no progress for ten minutes: the named pod does not start or serve, PD or "
        "another component refuses the step, or another wait does not end. The message says since when, and in "
        "brackets the reason of the wait, e.g. `PDLoading`.",
        "It has emitted a Warning event, restarts no further pod, and continues by itself once it can. Limits such "
        "as `evictLeaderTimeout` still hold.",
        "The message names the way out; `kubectl describe pod` and `kubectl logs` say more. If the new spec is "
        "wrong, correct it: the operator replaces the broken pods first. If a node has no room or is gone, repair or "
        "replace it.",
    ),
    "Scaling": Reason(
        "The pods have a new template while the component is being scaled.",
        "It finishes the scaling first, then restarts the pods.",
        TRANSIENT,
    ),
    "OnDelete": Reason(
        "`statefulSetUpdateStrategy` is `OnDelete`: pods get the new revision when you delete them.",
        "It does not restart pods; the upgrade ends when all of them run the new revision.",
        "`kubectl delete pod` one by one, highest ordinal first, each after the previous one is Ready again.",
    ),
    "HeldBack": Reason(
        "An annotation of the cluster, such as `tidb.pingcap.com/tikv-partition`, keeps pods below an ordinal on the "
        "old revision; all others run the new one.",
        "It restarts none of these pods.",
        "Lower the number step by step, or remove the annotation: `kubectl annotate tc NAME "
        "tidb.pingcap.com/tikv-partition-`.",
    ),
    "ForcedUpgrade": Reason(
        "PD or DM does not answer and you have set the force annotation, or its single member does not listen, or "
        "TLS is being switched.",
        "It restarts all of its pods at once, and checks neither quorum nor leader.",
        "Remove the annotation afterwards: `kubectl annotate tc NAME tidb.pingcap.com/force-upgrade-`.",
    ),
    "PDQuorum": Reason(
        "Without the next pod, PD would have no quorum of healthy members.",
        "It waits until the other members are healthy. With two members that is impossible, so it needs your decision.",
        "Repair the member that the message names. With two members: scale PD to 3, or accept a short outage with "
        '`kubectl annotate tc NAME tidb.pingcap.com/pd-check-quorum-before-upgrade="false"`.',
    ),
    "PDLoading": Reason(
        "A PD member was restarted and has not loaded all regions yet.",
        "It waits before restarting the next one.",
        NOTHING_YET,
    ),
    "TransferringPDLeader": Reason(
        "The pod that is next is the PD leader.",
        "It has asked PD to transfer the leadership and waits until another member leads.",
        NOTHING_YET,
    ),
    "TransferringPrimary": Reason(
        "The pod that is next is the primary of a PD microservice.",
        "It has asked PD to make another pod the primary, and waits until it is.",
        NOTHING_YET,
    ),
    "EvictingLeaders": Reason(
        "PD is moving region leaders away from a TiKV store before its pod restarts, or because you requested it by "
        "annotation.",
        "It waits until none is left, for its own restarts at most `spec.tikv.evictLeaderTimeout`.",
        "Nothing. A shorter `evictLeaderTimeout` takes effect immediately. The eviction never ends with a single "
        "store, or if your own schedulers move leaders back: `pd-ctl scheduler show`.",
    ),
    "FlushingLogBackup": Reason(
        "A log backup runs, and a TiKV flushes its part of it before its pod restarts.",
        "It waits for at most three minutes, 30 seconds if TiKV refuses or is unreachable. Then it restarts the pod "
        "anyway, and the event `LogBackupNotFlushed` names the cause: until TiKV has caught up, a restore to a point "
        "in time may reach less far.",
        "Nothing. `kubectl annotate tc NAME tidb.pingcap.com/tikv-restart-without-flush-log-backup=true` skips the "
        "flush.",
    ),
    "LeadersComingBack": Reason(
        "A TiKV pod was restarted and leads fewer regions than before.",
        "It waits until two thirds have returned, at most `spec.tikv.waitLeaderTransferBackTimeout`.",
        TRANSIENT,
    ),
    "DDLPaused": Reason(
        "TiDB is being upgraded to another version and DDL is paused (smooth upgrade).",
        "It resumes DDL when all servers run the new version and are healthy.",
        "Nothing, unless the rest of the upgrade is left to you (`OnDelete`, `HeldBack`): "
        "finish it, or restore the old version; then DDL resumes. `ADMIN SHOW DDL JOBS` shows the paused jobs.",
    ),
    "ResumingDDL": Reason(
        "Another upgrade of TiDB began before the previous one had finished.",
        "It resumes DDL after the first upgrade before pausing it for the second one.",
        TRANSIENT,
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
        "Pods are being removed, highest ordinals first. A TiKV store moves its data away first (the message counts "
        "the regions left), and a PD member leaves PD.",
        "It removes a pod when PD reports its store as Tombstone, or no longer lists its member. Its volumes are kept.",
        "Nothing; with much data this takes hours. To cancel it, raise the replicas again: an Offline store becomes "
        "Up again and keeps its data.",
    ),
    "FailedScaleIn": Reason(
        "The scale-in would lose data, the remaining stores have no room for the data of the leaving ones, or "
        "something else depends on PD. The message says why.",
        "It removes nothing, and reverts the steps already taken. It asks PD again every 30 seconds.",
        "Raise the replicas again. To continue: lower PD's `max-replicas`, or a table's replicas on "
        "TiFlash, enlarge the volumes of the remaining stores, or remove what the message names.",
    ),
    "UnknownFields": Reason(
        "The spec has fields that this operator, or Kubernetes, does not know and ignores. The condition "
        "`UnknownFields` names each, and the field that you probably meant.",
        "It applies everything else.",
        "Correct the spelling or nesting of these fields, or remove them.",
    ),
    "SettingsOverridden": Reason(
        "A flag of the start script, or the operator, overrides settings of a configuration. The condition "
        "`SettingsOverridden` names each, what holds, and what to write instead.",
        "It applies everything else, and restarts no pod for it.",
        "Remove or replace the settings.",
    ),
    "FieldsIgnored": Reason(
        "Fields of the spec or annotations have no effect, at all or beside other fields. The condition "
        "`FieldsIgnored` names each, and what to write instead.",
        "It applies everything else, and restarts no pod for it.",
        "Remove or replace the fields.",
    ),
    "ChangesPending": Reason(
        "This version of the operator builds pods differently. The condition `ChangesPending` names the components and "
        "the first difference.",
        "It restarts no pod for it.",
        "Nothing: the component gets the change with its next restart, e.g. by `kubectl tidb restart`.",
    ),
    "BinlogRemoved": Reason(
        "TiDB v8.4.0 and later write no binlogs, but the spec has a Pump to collect them. If such a TiDB runs "
        "already, the condition `BinlogSupported` says so. The operator upgrades neither an older TiDB, since "
        "drainers would miss its writes, nor Pump, which has no such version.",
        "It restarts no pod for the new version. Everything else continues.",
        "Leave Pump at its version with `spec.pump.version`, and set up replication with TiCDC. Then set "
        "`spec.tidb.binlogEnabled` to false, which upgrades TiDB. Finally scale Pump to 0 and remove `spec.pump`. Or "
        "leave TiDB at its version, too, with `spec.tidb.version`.",
    ),
    "PodsOfOthers": Reason(
        "Foreign pods carry the labels of this cluster's pods. The Services of PD and TiDB select them, so some "
        "requests go to them and fail.",
        "It neither counts nor touches these pods. Everything else continues.",
        "Change the labels of the named pods in the template of their owner, or delete the pods.",
    ),
    "StalePVC": Reason(
        "A new pod would start on the volume claim of an earlier one.",
        "It deletes a claim that a scale-in left behind, and waits for the deletion. It keeps any other claim.",
        "If `Progressing` is False: inspect the data of the named claim, then `kubectl delete pvc CLAIM`.",
    ),
}

_VOLUMES: Mapping[str, Reason] = {
    "GrowingVolumes": Reason(
        "Volume claims request more storage, and the storage provider has not granted it to all of them yet.",
        "It waits, then recreates the StatefulSet with the new size. No pod is restarted.",
        "Nothing, unless the message names an error of the storage driver, or `FileSystemResizePending`: "
        "then restart that pod. `kubectl describe pvc CLAIM` shows more.",
    ),
    "ModifyingVolumes": Reason(
        "Volumes get another storage class or volume attributes class in place, and the storage driver has not changed "
        "all of them yet.",
        "It changes the volumes of one pod after another, and a volume again after six hours at the earliest, "
        "because storage providers refuse that before. No pod is restarted. In an upgrade, each TiKV waits "
        "at most ten minutes for it, without leaders.",
        "Nothing, unless the message names an error of the storage driver: `kubectl describe pvc CLAIM` shows more. If "
        "its driver has not begun after minutes, see whether it supports VolumeAttributesClass.",
    ),
    "VolumeCantChange": Reason(
        "A volume cannot be changed as the spec requests: it would be smaller, of a storage class that cannot be "
        "had in place, its class does not allow expansion, or the storage driver or Kubernetes refuses its volume "
        "attributes class. Or new volumes come out as the old ones are. Or a claim without a volume is kept, since "
        "its volume is to come with data: it has a source of data, a selector, or the id of a member or "
        "store.",
        "It leaves the volumes of that component as they are.",
        "Set the size or class back to what the message says. To have the volumes replaced, pod by pod, after their "
        "data has been moved away: `spec.enablePVCReplace: true`. To change the class in place: the feature "
        "`VolumeModifying`. To allow expansion: `kubectl patch storageclass CLASS -p "
        "'{\"allowVolumeExpansion\":true}'`.",
    ),
    "VolumeBeingDeleted": Reason(
        "The volume claim of a running pod was deleted. Kubernetes keeps it until the pod ends; then its "
        "data is lost. A deletion cannot be taken back.",
        "It restarts no Ready pod of that component, not even for a change of the spec.",
        "Have the data moved away and the volume replaced: `kubectl annotate pod POD "
        "tidb.pingcap.com/replace-volume=true`. TiKV needs a store to spare for that: scale it out first.",
    ),
    "Recreating": Reason(
        "A StatefulSet was deleted without its pods and is being recreated.",
        "It recreates it with the template that the pods are running, so that none is restarted.",
        TRANSIENT,
    ),
    "Converting": Reason(
        "The feature AdvancedStatefulSet was switched on or off, or v1.6 had it on: a StatefulSet moves between "
        "apps/v1 and apps.pingcap.com/v1.",
        "It creates the new StatefulSet and deletes the old one without its pods, which keep running. The new one may "
        "update no pod until its controller has named its revision and the pods are labelled with it.",
        "Nothing. If it takes minutes, check that the controller of the kind that the message names runs.",
    ),
    "DeleteSlotsInUse": Reason(
        "The feature AdvancedStatefulSet is off, but a StatefulSet of apps.pingcap.com/v1 leaves out ordinals, which a "
        "native one cannot.",
        "It leaves the component as it is.",
        "Let the operator that managed it continue, and remove the delete slots before you switch the feature off.",
    ),
    "TemplateChanges": Reason(
        "A StatefulSet is to move between apps/v1 and apps.pingcap.com/v1, but the API server would fill more default "
        "values into its pod template. Its pods would then be restarted.",
        "It leaves the component as it is.",
        "Switch the feature AdvancedStatefulSet back, and change the component's pods, so that they are restarted with "
        "all values. Then switch again.",
    ),
}

_SUSPENDING: Mapping[str, Reason] = {
    "Suspending": Reason(
        "`suspendAction.suspendStatefulSet` is true, and pods still exist: the operator suspends TiDB before TiKV "
        "before PD, and no component during its upgrade.",
        "It finishes what is in progress, then removes the StatefulSets.",
        "Nothing; set the field to false to cancel it.",
    ),
    "NodeLost": Reason(
        "Pods must end or be recreated, but their node does not answer: their processes may still run.",
        "It waits: Kubernetes ends such a pod only when its node returns, or when you declare the machine gone.",
        "If the machine is gone for good, `kubectl delete node NODE`, or, if the Node is to stay, `kubectl taint nodes "
        "NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`. If it may return, wait: two processes on "
        "the same data destroy it.",
    ),
    "Suspended": Reason(
        "No pods run, as the spec requests. Volumes, configuration and Services stay. The condition `Ready` is False.",
        "It waits until you resume the cluster.",
        "To resume: set `spec.suspendAction.suspendStatefulSet` to false.",
    ),
}

_PASSING: Mapping[str, Reason] = {
    "Conflict": Reason(
        "Another client changed the same object at the same time, or the operator's cache is behind.",
        WITH_THE_CACHE,
        TRANSIENT,
    ),
    "SpecChanged": Reason(
        "The operator reads the spec live before it creates or destroys anything. It was newer than in the cache.",
        AT_ONCE,
        TRANSIENT,
    ),
    "CacheOutdated": Reason(
        "The operator's cache is behind: it lacks a StatefulSet, a pod that has recovered, or the operator's last "
        "write.",
        WITH_THE_CACHE,
        TRANSIENT,
    ),
    "OwnerDeleted": Reason(
        "The object was deleted while the operator was reconciling it.",
        "The operator makes no more changes. Kubernetes removes what belongs to the object; volumes are kept.",
        NOTHING,
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
    "Out of service": OUTAGES,
    "Failover": FAILING_OVER,
    "DM": OF_DM,
    "Commands on pods": COMMANDS,
    "Initializers, dashboards, profiling": OTHER_RESOURCES,
    "Monitors": MONITORS,
    "Backups and restores": OF_JOBS,
    "Transient": _PASSING,
    "Errors": ERRORS,
}
"""Topic → reason → its explanation."""

PAGES: Mapping[str, tuple[str, ...]] = {
    "serving": ("Is it serving", "Out of service", "PD or the stores are unknown"),
    "spec": ("The spec", "Volumes"),
    "changes": ("Starting", "Restarting pods", "Scaling", "Suspending", "Commands on pods"),
    "failover": ("Failover",),
    "dm": ("DM",),
    "other-kinds": ("Initializers, dashboards, profiling", "Monitors"),
    "backups": ("Backups and restores",),
    "errors": ("Transient", "Errors"),
}
"""Page in docs/reasons/, without its suffix → the topics on it."""

REASONS: Mapping[str, Reason] = {name: reason for topic in TOPICS.values() for name, reason in topic.items()}
"""Reason → its explanation."""
