"""The assembly of the controller of Restore: handlers, queue, sync (CW-1)."""

from apis.backup_defaulting import with_restore_defaults
from apis.consent import ReferencePolicy
from apis.restores import Restore
from controllers.controller import Controller
from controllers.informing import NO_RESYNC, Informers
from controllers.job_owners.controller import job_owner_controller
from controllers.job_owners.job_owner import JobOwner
from controllers.job_owners.sync import JobOwnerKind
from controllers.references import References
from controllers.restore import making, replication
from controllers.runtime import Runtime
from kube.actions import Decision
from kube.objects import Object
from kube.resources import COMPACT_BACKUPS, RESTORES
from member.backups.naming import RESTORE
from member.backups.pods import ManagerSettings
from member.outcome import Outcome


def _step(ctx: JobOwner[Restore]) -> Decision[Outcome | None]:
    return replication.sync(ctx) if ctx.model.spec.is_replication else making.sync(ctx)


_KIND = JobOwnerKind(resource=RESTORES, model=Restore, defaults=with_restore_defaults, step=_step)


def restore_controller(
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
    references: ReferencePolicy,
) -> Controller:
    """Register handlers and return the controller, not started. Arguments as for `job_owner_controller`."""
    controller = job_owner_controller(RESTORE, _KIND, runtime, resources, owned, settings, references)
    compactions = References(_compaction_of)
    resources.informer_for(RESTORES).add_event_handler(compactions.noting(), NO_RESYNC)
    resources.informer_for(COMPACT_BACKUPS).add_event_handler(compactions.enqueueing(controller.enqueue), NO_RESYNC)
    return controller


def _compaction_of(restore: Object) -> list[str]:
    """The key of the CompactBackup that a Restore waits for (RPL-3)."""
    config = (restore.decode().get("spec") or {}).get("replicationConfig")
    name = config.get("compactBackupName") if isinstance(config, dict) else None
    return [f"{restore.metadata.namespace}/{name}"] if name else []
