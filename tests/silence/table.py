"""Every destructive step of the operator, and the effect of each silence on it (docs/rules/silence.md). A site is a
destructive call of the operator, as `module function call`. `python -m tests.silence` renders the tables for the
document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.silence.columns import Column

WAITS = "waits"
ANSWERED = "answered"
CUT_OFF = "without it"
LIVE = "asks Kubernetes"
NEVER = "never acts"

MEANINGS: Mapping[str, str] = {
    WAITS: "nothing is destroyed before the silence ends",
    ANSWERED: "acts: what the step needs has answered in this reconcile, be it late or through another member",
    CUT_OFF: "acts: the data plane has answered, and has a quorum and all data without the pod behind the node",
    LIVE: "acts: the step needs no word of the data plane; the API server shows what goes, and that the user wants it",
    NEVER: "the step destroys nothing, whatever answers",
}
"""The texts of the table's cells."""


@dataclass(frozen=True, slots=True)
class Row:
    """A step, and its cells in the order of `Column`.

    `scenario` is the one of `tests.silence.scenarios` that drives each cell. `sites` are the calls in it.
    `given_up`: after minutes of silence, the operator reports that it leaves the step to the user.
    """

    step: str
    scenario: str
    cells: Sequence[str]
    sites: Sequence[str]
    given_up: bool = False

    def cell(self, column: Column) -> str:
        """The effect of a silence on the step."""
        return self.cells[list(Column).index(column)]


_W, _A, _C, _L, _N = WAITS, ANSWERED, CUT_OFF, LIVE, NEVER

ROWS: Sequence[Row] = (
    Row(
        "scale PD in: hand over, remove the member, lower the replicas",
        "pd-scale-in",
        (_W, _A, _W, _W, _W, _C, _W),
        (
            "member/pd/scaling.py _drain hand_leadership",
            "member/pd/scaling.py hand_leadership TransferLeader",
            "member/pd/scaling.py _drain RemoveMember",
            "member/lifecycle/scaling.py next_lower_replicas Replicas.lowered",
        ),
    ),
    Row(
        "replace a lost PD member: remove it, delete its pod and claims",
        "pd-failover",
        (_W, _A, _W, _W, _W, _C, _W),
        ("member/pd/failover.py _remove RemoveMember", "member/failover/steps.py clean_up Delete"),
    ),
    Row(
        "restart PD's pods one by one",
        "pd-roll",
        (_W, _A, _W, _W, _W, _W, _W),
        (
            "member/pd/rolling.py _transfer hand_leadership",
            "member/lifecycle/roll.py _restart UpdateStrategy.lowered",
            "member/lifecycle/roll.py _restart PodDeletion",
            "member/lifecycle/roll.py _restart_reached PodDeletion",
        ),
    ),
    Row(
        "restart a PD pod by `pd-transfer-leader`",
        "pd-command",
        (_W, _A, _W, _W, _W, _C, _W),
        (
            "member/pd/commands.py _stay_away hand_leadership",
            "member/commands.py _delete_pod Delete",
        ),
    ),
    Row(
        "give a PD pod new volumes by `replace-volume`",
        "pd-replace-volume",
        (_W, _A, _W, _W, _W, _C, _W),
        (
            "member/pd/commands.py _leave_pd hand_leadership",
            "member/pd/commands.py _remove RemoveMember",
            "member/commands.py restart_without_volumes Delete",
        ),
    ),
    Row(
        "scale TiKV in: evict leaders, take the store offline, lower the replicas",
        "tikv-scale-in",
        (_W, _A, _A, _W, _W, _C, _W),
        (
            "member/stores/scaling.py _drain_store evictions.begin",
            "member/stores/scaling.py _take_offline RemoveStore",
            "member/stores/evictions.py begin EvictLeaders",
        ),
    ),
    Row(
        "restart TiKV's pods one by one, each without leaders",
        "tikv-roll",
        (_W, _A, _A, _W, _W, _W, _W),
        ("member/tikv/rolling.py evict evictions.begin",),
    ),
    Row(
        "restart a TiKV pod by `evict-leader`",
        "tikv-command",
        (_W, _A, _W, _W, _W, _C, _W),
        ("member/tikv/commands.py _evict evictions.begin",),
    ),
    Row(
        "give a store new volumes by `replace-volume`",
        "tikv-replace-volume",
        (_W, _A, _W, _W, _W, _C, _W),
        ("member/stores/commands.py _take_offline RemoveStore",),
    ),
    Row(
        "scale out where a removed member has left its claims: delete them first",
        "tikv-scale-out",
        (_W, _A, _A, _W, _W, _C, _W),
        ("member/lifecycle/scaling.py _delete Delete",),
    ),
    Row(
        "delete the claims of a removed PD member (`enablePVReclaim`)",
        "pd-claim",
        (_W, _A, _A, _W, _W, _C, _W),
        ("meta/pvc_cleaner.py _reclaim Delete", "meta/pvc_cleaner.py _reclaim set_policy"),
    ),
    Row("delete the claims of a removed store (`enablePVReclaim`)", "tikv-claim", (_W, _A, _A, _W, _W, _C, _W), ()),
    Row("scale TiDB in: lower the replicas", "tidb-scale-in", (_W, _A, _A, _W, _W, _C, _W), ()),
    Row(
        "scale Pump in: close its node, lower the replicas",
        "pump-scale-in",
        (_W, _A, _A, _W, _W, _W, _W),
        ("member/pump/scaling.py _close ClosePumpNode",),
    ),
    Row(
        "scale TiCDC in: hand over until `gracefulShutdownTimeout`, lower the replicas",
        "ticdc-scale-in",
        (_W, _A, _W, _W, _W, _C, _W),
        ("member/ticdc/handover.py _step MoveTables", "member/ticdc/handover.py _step ResignOwner"),
    ),
    Row(
        "suspend: delete the StatefulSets, keep the claims",
        "suspension",
        (_L, _L, _L, _L, _L, _L, _W),
        ("member/lifecycle/suspend.py _remove Delete",),
    ),
    Row(
        "recreate a StatefulSet for what Kubernetes cannot change; its pods stay",
        "recreation",
        (_W, _A, _A, _W, _W, _W, _W),
        ("member/lifecycle/creation.py _delete Delete",),
    ),
    Row(
        "scale DM's masters in: hand over, remove the master, lower the replicas",
        "dm-master-scale-in",
        (_W, _A, _A, _W, _W, _C, _W),
        ("member/dm/scaling.py _drain_master RemoveMaster", "member/dm/scaling.py _drain_master ResignMaster"),
    ),
    Row(
        "restart DM's masters one by one",
        "dm-master-roll",
        (_W, _A, _A, _W, _W, _W, _W),
        ("member/dm/rolling.py _hand_over ResignMaster",),
    ),
    Row(
        "replace a lost master: remove it, delete its pod and claims",
        "dm-master-failover",
        (_W, _A, _W, _W, _W, _C, _W),
        ("member/dm/failover.py _remove_master RemoveMaster",),
    ),
    Row(
        "scale DM's workers in: lower the replicas, remove the worker once it is offline",
        "dm-worker-scale-in",
        (_W, _A, _A, _W, _W, _C, _W),
        ("member/dm/scaling.py take_out_offline RemoveWorker",),
    ),
    Row(
        "delete the claims of a removed worker (`enablePVReclaim`)", "dm-worker-claim", (_W, _A, _A, _W, _W, _C, _W), ()
    ),
    Row(
        "restart a pod that is not Ready for a new template",
        "unready-roll",
        (_W, _A, _W, _W, _W, _W, _W),
        (
            "member/lifecycle/roll.py _begin UpdateStrategy.lowered",
            "member/lifecycle/roll.py _first_restart UpdateStrategy.lowered",
            "member/lifecycle/roll.py _first_restart UpdateStrategy.on_delete",
            "member/lifecycle/roll.py _continue UpdateStrategy.lowered",
            "member/lifecycle/roll.py _restart_unready UpdateStrategy.lowered",
            "member/lifecycle/roll.py _by_deletion UpdateStrategy.on_delete",
            "member/lifecycle/roll.py _by_deletion PodDeletion",
            "member/lifecycle/component_sync.py _delete Delete",
            "member/lifecycle/component_sync.py _delete PodDeletion",
        ),
    ),
    Row(
        "remove a PD member that never started, and whose pod crashes",
        "stray-member",
        (_W, _A, _A, _W, _W, _C, _A),
        ("member/pd/scaling.py _remove_member RemoveMember",),
    ),
    Row(
        "restart the pods of a PD microservice, each after another has become the primary",
        "primary",
        (_W, _A, _W, _W, _W, _W, _W),
        ("member/pdms/scaling.py hand_over TransferPrimary",),
    ),
    Row(
        "delete a pod that waits for a claim that is gone",
        "orphan",
        (_L, _L, _L, _L, _L, _L, _W),
        ("meta/orphan_pods.py _delete Delete",),
    ),
    Row(
        "delete a claim for which no volume can be provided",
        "claim-without-volume",
        (_W, _A, _A, _W, _W, _C, _W),
        ("member/volumes/replacement.py _delete Delete",),
    ),
    Row(
        "set the reclaim policy that the user wishes",
        "reclaim-policy",
        (_L, _L, _L, _L, _L, _L, _W),
        ("meta/volumes.py _keep set_policy",),
    ),
    Row(
        "forget a TiDB server that ended, for TiDB Dashboard",
        "topology",
        (_W, _A, _A, _W, _W, _C, _A),
        ("meta/topology.py act topology.forget",),
    ),
    Row(
        "delete the pod of a machine that is gone, without waiting for its kubelet",
        "lost-pod",
        (_W, _A, _A, _W, _W, _W, _W),
        ("member/failover/node_failure.py _force Delete",),
    ),
    Row(
        "leave restarts to the user, who has asked for OnDelete",
        "on-delete",
        (_N, _N, _N, _N, _N, _N, _N),
        ("member/lifecycle/roll.py _leave_to_the_user UpdateStrategy.on_delete",),
    ),
    Row(
        "take the store of a machine that is gone offline",
        "lost-store",
        (_W, _A, _A, _W, _W, _C, _W),
        ("member/stores/failover.py _delete_store RemoveStore",),
    ),
    Row(
        "delete the Job of a Backup, Restore, schedule or TidbInitializer",
        "job",
        (_L, _L, _L, _L, _L, _L, _W),
        (
            "controllers/job_owners/job_owner.py delete_job delete_job",
            "controllers/backup/cleaning.py _has_ended delete_job",
            "controllers/backup/cleaning.py _look_after delete_job",
            "controllers/backup/cleaning.py _ended_without_a_word delete_job",
            "controllers/backup/logs.py _look_after delete_job",
            "controllers/backup/logs.py _make delete_job",
            "controllers/backup/making.py _try_again delete_job",
            "controllers/backup/stopping.py _again delete_job",
            "controllers/initializer/running.py _delete delete_job",
            "controllers/initializer/running.py _make_again delete_job",
            "controllers/job_deletion.py delete_job Delete",
        ),
    ),
    Row(
        "end the task of a log backup whose Backup is deleted",
        "log-task",
        (_W, _A, _A, _W, _W, _C, _W),
        (
            "controllers/backup/stopping.py end_elsewhere kernel.end",
            "controllers/backup/kernel.py end EndLogTask",
            "controllers/backup/stopping.py build jobs.stop_job",
            "dataplane/log_backups.py end_log_task delete_together",
        ),
        given_up=True,
    ),
    Row(
        "remove the files of a deleted Backup, by a Job",
        "files",
        (_L, _L, _L, _L, _L, _L, _W),
        ("controllers/backup/cleaning.py build jobs.clean_job",),
    ),
    Row(
        "remove the beginning of a log, or end it, by a Job",
        "log-truncation",
        (_L, _L, _L, _L, _L, _L, _W),
        ("controllers/backup/logs.py _built jobs.log_job",),
    ),
    Row(
        "restore data, by a Job",
        "restore",
        (_L, _L, _L, _L, _L, _L, _W),
        (
            "controllers/restore/making.py _built jobs.restore_job",
            "controllers/restore/making.py _built jobs.import_job",
            "controllers/restore/replication.py build jobs.step_job",
        ),
    ),
    Row(
        "remove what a failed restore left, by a Job",
        "prune",
        (_L, _L, _L, _L, _L, _L, _W),
        ("controllers/restore/making.py _make_prune jobs.prune_job",),
    ),
    Row(
        "remove a finalizer",
        "finalizer",
        (_L, _L, _L, _L, _L, _L, _W),
        (
            "controllers/backup/cleaning.py _finish RemoveFinalizer",
            "controllers/backup/cleaning.py _let_go RemoveFinalizer",
            "controllers/simple_kind.py release remove_finalizer",
            "controllers/tidbmonitor/rights.py finalize remove_finalizer",
        ),
    ),
    Row(
        "delete a Backup or CompactBackup that its schedule no longer keeps",
        "expiry",
        (_L, _L, _L, _L, _L, _L, _W),
        ("controllers/backup_schedule/expiry.py _delete Delete",),
    ),
    Row(
        "delete objects without data that are no longer wanted: rights, Services, Deployments",
        "without-data",
        (_L, _L, _L, _L, _L, _L, _W),
        (
            "controllers/consent.py withdraw delete_if",
            "controllers/dashboard/kind.py _make prune",
            "controllers/owned_deletion.py delete_if destroyer.delete",
            "controllers/owned_deletion.py prune delete_if",
            "controllers/owned_workloads.py _delete_broken delete_if",
            "controllers/tidbmonitor/migration.py migrate delete_if",
            "controllers/tidbmonitor/migration.py _release delete_if",
            "controllers/tidbmonitor/rights.py withdraw_unwanted delete_if",
            "controllers/tidbmonitor/rights.py _withdraw delete_if",
            "controllers/tidbmonitor/stages.py _prune prune",
            "member/lifecycle/creation.py move Delete",
        ),
    ),
)
