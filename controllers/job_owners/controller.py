"""The controller of a kind whose objects Jobs carry out, put together: handlers, queue, sync (CW-1)."""

from controllers.controller import Controller
from controllers.enqueueing import enqueue_owner
from controllers.informing import NO_RESYNC, Informers
from controllers.job_owners.job_owner import JobCaches, M
from controllers.job_owners.sync import JobOwnerKind, JobOwnerSync
from controllers.runtime import Runtime
from kube.resources import JOBS, TIDB_CLUSTERS
from member.backups.pods import ManagerSettings


def job_owner_controller(  # noqa: PLR0917  (what a controller is made of)
    name: str,
    kind: JobOwnerKind[M],
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
) -> Controller:
    """Register handlers and return the controller `name`; nothing is started.

    `resources` watches the custom resources, `owned` the Jobs made for them.
    """
    owners = resources.lister_for(kind.resource)
    caches = JobCaches(owners, owned.lister_for(JOBS), resources.lister_for(TIDB_CLUSTERS))
    controller = runtime.controller(name, JobOwnerSync(kind, caches, runtime, settings))
    runtime.enqueue_objects(resources, kind.resource, controller.enqueue)
    owned.informer_for(JOBS).add_event_handler(enqueue_owner(kind.resource, owners, controller.enqueue), NO_RESYNC)
    return controller
