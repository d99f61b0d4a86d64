"""Reasons of DMClusters."""

from collections.abc import Mapping

from cli.reasons.reason import NOTHING_YET, Reason

_LOGS = "Read `kubectl logs` of the pods of dm-master and dm-worker."

OF_DM: Mapping[str, Reason] = {
    "WaitingForDMMaster": Reason(
        "The workers of DM wait until a quorum of masters is healthy and Ready, or until the masters have been "
        "restarted or scaled.",
        "It starts or restarts the workers when the masters are done.",
        "Look at the condition Progressing of `status.master`.",
    ),
    "DMMasterNotReady": Reason(
        "No pod of dm-master is Ready yet.",
        "It asks the masters when one is.",
        "Read `kubectl describe pod` of the pods of dm-master.",
    ),
    "DMMasterNotAnswering": Reason(
        "The masters of a new DMCluster do not answer yet.",
        "It asks again, with increasing delays.",
        _LOGS,
    ),
    "DMMasterUnreachable": Reason(
        "The masters, which answered before, do not answer, or not as DM does.",
        "It makes no decision that needs them: their last answers do not count.",
        f"Check whether the operator's pod can reach the Service of dm-master. {_LOGS}",
    ),
    "DMMasterUnknown": Reason(
        "The next action needs an answer of the masters, which they have not given in this reconcile.",
        "It waits until they answer.",
        "Look at the same condition of `status.master`: it says why they do not answer.",
    ),
    "DMWorkerUnknown": Reason(
        "The next action on workers needs an answer of the masters, which they have not given in this reconcile.",
        "It waits until they answer.",
        "Look at the condition Progressing of `status.master`.",
    ),
    "DMMasterUnhealthy": Reason(
        "Some masters are not alive, as the others report, or have not joined.",
        "It waits; where a master stays lost, failover replaces it at the time in the message.",
        _LOGS,
    ),
    "DMWorkerUnhealthy": Reason(
        "Some workers are offline, or have not registered with the masters.",
        "It waits; where a worker stays lost, failover starts another one.",
        _LOGS,
    ),
    "DMMasterQuorum": Reason(
        "A master can't be restarted, because the others would be no quorum.",
        "It waits until enough of them are alive.",
        "Repair the masters that the message names. With two masters none can ever be restarted: have three.",
    ),
    "TransferringDMMasterLeader": Reason(
        "The master that leads is about to be restarted, and has been asked to let another one lead.",
        "It restarts the pod when another one does.",
        NOTHING_YET,
    ),
    "DMMasterFailover": Reason(
        "A lost master is being replaced: it is recorded in `status.master.failureMembers` and taken out of DM, its "
        "pod and volume are deleted, and one more pod is started.",
        "It replaces one master at a time, and only with a majority that is alive.",
        "Nothing. The failover ends when all requested masters are healthy.",
    ),
    "DMMasterFailedOver": Reason(
        "A master was lost, and another one is serving in its place.",
        "It removes the extra pod when all requested masters are healthy again.",
        "Find out why the pod that the message names has not recovered.",
    ),
    "DMMasterQuorumLost": Reason(
        "Half of the masters or more are lost: the others can decide nothing.",
        "It replaces none, since that takes a quorum.",
        "Repair pods or nodes until a majority runs. Where the volumes are lost for good, give up the masters' data: "
        "suspend them, delete their PVCs, resume, and create sources and tasks again.",
    ),
    "DMWorkerOffline": Reason(
        "A worker is lost: the masters do not hear of it, and Kubernetes reports that its pod or node is not Ready.",
        "It starts another one at the time in the message, unless the worker recovers. DM gives the source of a lost "
        "worker to one that is free.",
        "Repair the pod or node.",
    ),
    "DMWorkerFailover": Reason(
        "A lost worker has been recorded in `status.worker.failureMembers`, and one more pod is started.",
        "The lost pod and its volume are kept.",
        "Repair the lost pod or its node; then recover, see `DMWorkerFailedOver`.",
    ),
    "DMWorkerFailedOver": Reason(
        "A worker was lost, and another one has taken its place. This lasts until you confirm that it is over.",
        "Nothing more: the extra pod is kept.",
        "When all requested workers are online again, set `spec.worker.failover.recoverByUID` to the value in the "
        "message, or `spec.worker.recoverFailover` to true.",
    ),
    "DMWorkerBound": Reason(
        "A worker that is to be removed replicates a source, and no other one is free to take that over: the "
        "replication would stand still.",
        "It keeps the worker until its source is gone, or another worker is free.",
        "Add a worker, or let `dmctl` stop the source or transfer it.",
    ),
    "FailedUpdateDMMasterSTS": Reason(
        "The pods of dm-master would mount volumes that their StatefulSet does not have.",
        "It leaves that StatefulSet unchanged, since Kubernetes could not create its pods.",
        "Remove the mount, or restore the volume.",
    ),
    "FailedUpdateDMWorkerSTS": Reason(
        "The pods of dm-worker would mount volumes that their StatefulSet does not have.",
        "It leaves that StatefulSet unchanged, since Kubernetes could not create its pods.",
        "Remove the mount, or restore the volume.",
    ),
}
