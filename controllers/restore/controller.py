"""The assembly of the controller of Restore: handlers, queue, sync (CW-1)."""

from apis.backup_defaulting import with_restore_defaults
from apis.consent import ReferencePolicy
from apis.restores import Restore
from controllers.controller import Controller
from controllers.informing import Informers
from controllers.job_owners.controller import job_owner_controller
from controllers.job_owners.sync import JobOwnerKind
from controllers.restore import making
from controllers.runtime import Runtime
from kube.resources import RESTORES
from member.backups.naming import RESTORE
from member.backups.pods import ManagerSettings

_KIND = JobOwnerKind(resource=RESTORES, model=Restore, defaults=with_restore_defaults, step=making.sync)


def restore_controller(
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
    references: ReferencePolicy,
) -> Controller:
    """Register handlers and return the controller, not started. Arguments as for `job_owner_controller`."""
    return job_owner_controller(RESTORE, _KIND, runtime, resources, owned, settings, references)
