"""The assembly of the controller of Backup: handlers, queue, sync (CW-1)."""

from functools import partial

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from apis.consent import ReferencePolicy
from controllers.backup import cleaning, logs, making
from controllers.backup.kernel import Kernel, Watched
from controllers.backup.metrics import BackupMetrics
from controllers.cluster_etcd import EtcdOf
from controllers.controller import Controller
from controllers.informing import Informers
from controllers.job_owners.controller import job_owner_controller
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.sync import JobOwnerKind
from controllers.runtime import Runtime
from kube.actions import Decision
from kube.resources import BACKUPS
from member.backups.naming import BACKUP
from member.backups.pods import ManagerSettings
from member.outcome import Outcome


def backup_controller(  # noqa: PLR0917  (what a controller is made of)
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
    references: ReferencePolicy,
    etcd_of: EtcdOf,
) -> Controller:
    """Register handlers and return the controller, which is not started.

    `etcd_of` returns clients of the clusters' etcd, which stores the tasks of log backups. For the other arguments see
    `job_owner_controller`.
    """
    kernel = Kernel(etcd_of, runtime.clock, runtime.memory(Watched, BACKUPS))

    def step(ctx: JobOwner[Backup]) -> Decision[Outcome | None]:
        if ctx.owner.metadata.deletion_timestamp:
            return cleaning.sync(ctx, kernel)
        return logs.sync(ctx, kernel) if ctx.model.spec.backup_mode == "log" else making.sync(ctx)

    kind = JobOwnerKind(resource=BACKUPS, model=Backup, defaults=with_backup_defaults, step=step, forget=kernel.forget)
    BackupMetrics(
        runtime.registry, resources.lister_for(BACKUPS), runtime.clock, partial(runtime.key_locks.fence_of, BACKUPS)
    )
    return job_owner_controller(BACKUP, kind, runtime, resources, owned, settings, references)
