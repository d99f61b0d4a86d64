"""The controller of Backup, put together: handlers, queue, sync (CW-1)."""

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from controllers.backup import cleaning, making
from controllers.controller import Controller, Result
from controllers.informing import Informers
from controllers.job_owners.controller import job_owner_controller
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.sync import JobOwnerKind
from controllers.runtime import Runtime
from kube.resources import BACKUPS
from member.backups.naming import BACKUP
from member.backups.pods import ManagerSettings


def _step(ctx: JobOwner[Backup]) -> Result | None:
    return cleaning.sync(ctx) if ctx.owner.metadata.deletion_timestamp else making.sync(ctx)


_KIND = JobOwnerKind(resource=BACKUPS, model=Backup, defaults=with_backup_defaults, step=_step)


def backup_controller(
    runtime: Runtime, resources: Informers, owned: Informers, settings: ManagerSettings
) -> Controller:
    """Register handlers and return the controller; nothing is started. Arguments as for `job_owner_controller`."""
    return job_owner_controller(BACKUP, _KIND, runtime, resources, owned, settings)
