"""The assembly of the controller of CompactBackup: handlers, queue, sync (CW-1)."""

from apis.backup_defaulting import with_compact_defaults
from apis.compact_backups import CompactBackup
from apis.consent import ReferencePolicy
from controllers.compact_backup import making
from controllers.compact_backup.status import with_state, with_wait
from controllers.controller import Controller
from controllers.informing import Informers
from controllers.job_owners.controller import job_owner_controller
from controllers.job_owners.sync import JobOwnerKind
from controllers.runtime import Runtime
from kube.resources import COMPACT_BACKUPS
from member.backups.pods import ManagerSettings

NAME = "compactBackup"

_KIND = JobOwnerKind(
    resource=COMPACT_BACKUPS,
    model=CompactBackup,
    defaults=with_compact_defaults,
    step=making.sync,
    with_condition=with_state,
    with_wait=with_wait,
)


def compact_backup_controller(
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
    references: ReferencePolicy,
) -> Controller:
    """Register handlers and return the controller, not started. Arguments as for `job_owner_controller`."""
    return job_owner_controller(NAME, _KIND, runtime, resources, owned, settings, references)
