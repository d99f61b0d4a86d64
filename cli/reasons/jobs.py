"""Reasons for which Backups, Restores and CompactBackups wait, beside their Jobs.

A Backup and a Restore have them in the condition `Waiting`, a CompactBackup in `status.message`.
"""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PODS, NOTHING, Reason

_RETRIES = "It tries again, with increasing delays."

OF_JOBS: Mapping[str, Reason] = {
    "ClusterNotServing": Reason(
        "PD or TiKV of the TidbCluster does not serve, and BR needs both. Other components need not be Ready.",
        "It creates no Job; it checks every ten seconds, and starts when PD has a quorum and at most one TiKV store is "
        "not Up.",
        "`kubectl describe tc NAME` says what keeps PD or TiKV from serving.",
    ),
    "WaitingForLog": Reason(
        "The log backup has not reached the moment that the Restore or the CompactBackup asks for, as the status of "
        "its Backup shows.",
        "It restarts no TiKV pod and creates no Job; it checks every ten seconds, and starts once the log has it.",
        "Wait, resume the log backup if it is paused, or ask for an earlier moment: `spec.pitrRestoredTs` of a "
        "Restore, `spec.endTs` of a CompactBackup.",
    ),
    "WaitingForCompaction": Reason(
        "The snapshot of a replication restore is restored, and the CompactBackup of `spec.replicationConfig` still "
        "compacts the log.",
        "It restores the log as soon as the CompactBackup is Complete or Failed.",
        "Nothing. `kubectl get cpbk` shows how far the compaction is.",
    ),
    "CompactBackupNotFound": Reason(
        "The CompactBackup of `spec.replicationConfig` does not exist.",
        "It restores the snapshot, and then waits; with `waitTimeout` it restores the log without the compaction.",
        "Create the CompactBackup in the namespace of the Restore, or set `waitTimeout`.",
    ),
    "TiKVUpgrading": Reason(
        "The pods of TiKV run different images: an upgrade is in progress. BR has the version of the spec, and may not "
        "work with the stores that have yet to be upgraded.",
        "It creates no Job until all pods of TiKV run the image of the spec.",
        "Nothing. If the upgrade does not end, the condition `Progressing` of the TidbCluster says what blocks it.",
    ),
    "JobTerminating": Reason(
        "An earlier Job is being deleted, and its pods may still write.",
        "It creates no other Job until they have ended.",
        LOOK_AT_PODS,
    ),
    "ResultPending": Reason(
        "A Job has ended, but the status does not show its result yet.",
        "It waits a minute for it. Then it records that the result is lost.",
        NOTHING,
    ),
    "RetryPending": Reason(
        "A Job has failed, or could not be created.",
        "It creates the next one after a pause, as often as the spec allows.",
        "The logs of the Job's pods say why it failed. To try again at once, delete the Job.",
    ),
    "FilesInUse": Reason(
        "Another object still needs the files that are to be removed or truncated. The message names it.",
        "It removes nothing, and looks again every thirty seconds.",
        "Wait until that object has ended, or delete it.",
    ),
    "ForeignJob": Reason(
        "A Job with the required name belongs to another object.",
        "It leaves that Job alone, and looks again every thirty seconds.",
        "Delete that Job, or rename the object.",
    ),
    "PodCannotStart": Reason(
        "The pod of a Job does not start. The message says why.",
        "It looks again every thirty seconds.",
        "Correct what the message names.",
    ),
    "StoppingLogBackup": Reason(
        "A log backup that is being deleted still runs in the cluster; a Job stops it.",
        "It keeps the files until the cluster has ended the task.",
        "If it does not end, `kubectl logs job/stop-NAME`.",
    ),
    "StopLogBackupJobFailed": Reason(
        "The Job that stops a log backup has failed, or its name is taken: the task still runs in the cluster.",
        "It keeps the files, and creates the Job again after five minutes.",
        "Look at the logs of the Job's pods; or stop the task yourself: `br log stop --task-name=NAME`.",
    ),
    "LogTaskRemains": Reason(
        "The namespace of a log backup is being deleted, and the log backup still runs in a cluster of another "
        "namespace, whose PD does not answer.",
        "It removes the task from PD when PD answers, within five minutes. Then it lets the Backup go, and an event of "
        "the TidbCluster names what remains.",
        "`br log stop --task-name=NAME` when PD answers again: until then the task holds back garbage collection.",
    ),
    "OtherLogBackup": Reason(
        "The cluster runs another log backup, and BR runs one at a time in a cluster. The message says whose it is.",
        "It creates no Job, and looks again every thirty seconds.",
        "Stop the other one: delete its Backup, set its `spec.logStop`, or, where no Backup owns it, "
        "`br log stop --task-name=NAME`.",
    ),
    "WaitingForGCOff": Reason(
        "TiKV does not run with `gc.ratio-threshold = -1` yet, which a restore to a point in time needs.",
        "It sets that in the configuration of TiKV, restarts TiKV pod by pod, and begins afterwards.",
        "Nothing. The condition `Progressing` of the TidbCluster shows the progress of the restart.",
    ),
    "FilesBeingRemoved": Reason(
        "The files that a Restore or CompactBackup reads belong to a Backup that is being deleted with its files.",
        "It creates no Job.",
        "Delete this object; restore another Backup.",
    ),
    "NotStarted": Reason(
        "`spec.logStop` is set on a log backup that has not begun.",
        _RETRIES,
        "Remove `spec.logStop`, or delete the Backup.",
    ),
    "CleanUpFailed": Reason(
        "A deleted object stays because something created for it could not be removed. The message says what.",
        _RETRIES,
        "Correct what the message names: most often the rights of the operator.",
    ),
}
