"""The assembly of the controller of BackupSchedule: handlers, queue, sync (CW-1)."""

import functools

from apis.backup_defaulting import with_schedule_defaults
from apis.backup_schedules import BackupSchedule
from controllers.backup_schedule.conditions import with_refusal
from controllers.backup_schedule.metrics import ScheduleMetrics
from controllers.backup_schedule.scheduling import Children
from controllers.backup_schedule.sync import sync
from controllers.controller import Controller
from controllers.enqueueing import Enqueue, enqueue_owner
from controllers.informing import NO_RESYNC, Informers
from controllers.job_owners.job_owner import JobCaches
from controllers.job_owners.sync import JobOwnerKind, JobOwnerSync
from controllers.runtime import Runtime
from informers.handlers import ResourceEventHandlerFuncs
from informers.tombstones import last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, JOBS, TIDB_CLUSTERS
from member.backups.naming import GROUP_LABEL
from member.backups.pods import ManagerSettings

NAME = "backupSchedule"


def backup_schedule_controller(
    runtime: Runtime, resources: Informers, owned: Informers, settings: ManagerSettings
) -> Controller:
    """Register handlers and return the controller, not started. Arguments as for `job_owner_controller`."""
    children = Children(resources.lister_for(BACKUPS), resources.lister_for(COMPACT_BACKUPS))
    kind = JobOwnerKind(
        resource=BACKUP_SCHEDULES,
        model=BackupSchedule,
        defaults=with_schedule_defaults,
        step=functools.partial(sync, children=children),
        with_condition=with_refusal,
    )
    schedules = resources.lister_for(BACKUP_SCHEDULES)
    caches = JobCaches(schedules, owned.lister_for(JOBS), resources.lister_for(TIDB_CLUSTERS))
    fence_of = functools.partial(runtime.key_locks.fence_of, BACKUP_SCHEDULES)
    ScheduleMetrics(runtime.registry, schedules, children, runtime.clock, fence_of, settings.time_zone)
    controller = runtime.controller(NAME, JobOwnerSync(kind, caches, runtime, settings))
    runtime.enqueue_objects(resources, BACKUP_SCHEDULES, controller.enqueue)
    for resource in (BACKUPS, COMPACT_BACKUPS):
        handler = enqueue_owner(BACKUP_SCHEDULES, schedules, controller.enqueue)
        resources.informer_for(resource).add_event_handler(handler, NO_RESYNC)
    resources.informer_for(BACKUPS).add_event_handler(_enqueue_group(schedules, controller.enqueue), NO_RESYNC)
    return controller


def _enqueue_group(schedules: Lister, enqueue: Enqueue) -> ResourceEventHandlerFuncs:
    """A handler that enqueues all schedules of a Backup's group, because they wait for each other."""

    def all_of(backup: Object | None) -> None:
        group = backup.metadata.labels.get(GROUP_LABEL) if backup is not None else ""
        if backup is not None and group:
            for obj in schedules.list(backup.metadata.namespace, {GROUP_LABEL: group}):
                enqueue(obj.key)

    def on_update(old: Object, new: Object) -> None:
        if old.metadata.resource_version != new.metadata.resource_version:
            all_of(new)

    return ResourceEventHandlerFuncs(
        on_add=lambda _: None, on_update=on_update, on_delete=lambda deleted: all_of(last_known_object(deleted))
    )
