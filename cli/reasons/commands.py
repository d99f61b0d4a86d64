"""Outcomes of commands on pods."""

from collections.abc import Mapping

from cli.reasons.reason import NOTHING, TRANSIENT, WITH_THE_CACHE, Reason

COMMANDS: Mapping[str, Reason] = {
    "AnotherPodRestarting": Reason(
        "Another pod of the component is being restarted by a command.",
        "It starts with this pod when the other one is Ready again.",
        TRANSIENT,
    ),
    "PDBusy": Reason(
        "A PD pod carries `pd-transfer-leader` during PD's upgrade, scaling or suspension.",
        "It retries every minute.",
        TRANSIENT,
    ),
    "ComponentBusy": Reason(
        "A pod carries a command during an upgrade or scaling of its component, or of one that it depends on.",
        "It retries every minute.",
        TRANSIENT,
    ),
    "PodChanged": Reason("The pod that carries a command has just changed.", WITH_THE_CACHE, TRANSIENT),
    "ReplacingVolume": Reason(
        "A pod carries `tidb.pingcap.com/replace-volume`, set by you, or by the operator where "
        "`spec.enablePVCReplace` allows it: its member or store leaves PD, then the operator deletes the pod and its "
        "claims, which return empty.",
        "It continues when PD has removed the member, or moved all data off the store.",
        "Nothing. To cancel it before the store is Tombstone: remove the annotation, and set the store to Up in PD.",
    ),
    "TooFewStores": Reason(
        "Without the store of a pod, fewer TiKV stores would be Up than PD keeps replicas.",
        "It keeps the store, and retries every minute.",
        "Raise `spec.tikv.replicas` by one first, with `kubectl patch tc`.",
    ),
    "StoresLackRoom": Reason(
        "The data of the leaving store does not fit on the others: PD would stop moving it when they are low on space.",
        "It keeps the store, and retries every minute.",
        "Raise `spec.tikv.replicas` or `spec.tiflash.replicas` by one first, with `kubectl patch tc`, or delete data.",
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
        "The operator deleted the pod, as its command requested; the StatefulSet recreates it.", "It is done.", NOTHING
    ),
    "LeaderEvictionEnded": Reason(
        "Leaders may return to a TiKV pod: its annotation was removed, or the pod is Ready again.",
        "It has removed the scheduler from PD.",
        NOTHING,
    ),
    "EvictLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/tikv-evict-leader-expiration-time` has passed, or is not an RFC 3339 time with "
        "a time zone.",
        "It has removed the command from the pod.",
        "Annotate the pod again if leaders should be kept away.",
    ),
    "LeaderTransferred": Reason("The pod does not lead PD, as long as another member can.", "It is done.", NOTHING),
    "TransferLeaderExpired": Reason(
        "The time in `tidb.pingcap.com/pd-evict-leader-expiration-time` has passed, or is not an RFC 3339 time with a "
        "time zone.",
        "It has removed the command from the pod.",
        "Annotate the pod again if it should not lead.",
    ),
}
