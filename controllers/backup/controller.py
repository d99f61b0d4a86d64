"""The controller of Backup, put together: handlers, queue, sync (CW-1)."""

from controllers.backup.context import BackupCaches
from controllers.backup.sync import BackupSync
from controllers.controller import Controller
from controllers.enqueueing import enqueue_object, enqueue_owner
from controllers.informing import Informers
from controllers.runtime import Runtime
from kube.resources import BACKUPS, JOBS, TIDB_CLUSTERS
from member.backups.pods import ManagerSettings

NAME = "backup"
"""The controller in logs and metrics, and its queue."""


def backup_controller(
    runtime: Runtime, resources: Informers, owned: Informers, settings: ManagerSettings
) -> Controller:
    """Register handlers and return the controller; nothing is started.

    `resources` watches the custom resources, `owned` the Jobs made for Backups.
    """
    backups = resources.lister_for(BACKUPS)
    caches = BackupCaches(backups, owned.lister_for(JOBS), resources.lister_for(TIDB_CLUSTERS))
    controller = runtime.controller(NAME, BackupSync(caches, runtime, settings))
    resources.informer_for(BACKUPS).add_event_handler(enqueue_object(controller.enqueue))
    owned.informer_for(JOBS).add_event_handler(enqueue_owner(BACKUPS, backups, controller.enqueue))
    return controller
