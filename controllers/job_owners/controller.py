"""The assembly of the controller of a kind whose work Jobs do: handlers, queue, sync (CW-1)."""

from apis.consent import ReferencePolicy
from controllers.consent import consents_differ
from controllers.controller import Controller
from controllers.enqueueing import enqueue_owner
from controllers.informing import NO_RESYNC, Informers
from controllers.job_owners.job_owner import JobCaches, M
from controllers.job_owners.sync import JobOwnerKind, JobOwnerSync
from controllers.references import References
from controllers.runtime import Runtime
from kube.objects import Object
from kube.resources import JOBS, TIDB_CLUSTERS
from member.backups.pods import ManagerSettings


def job_owner_controller(  # noqa: PLR0917  (what a controller is made of)
    name: str,
    kind: JobOwnerKind[M],
    runtime: Runtime,
    resources: Informers,
    owned: Informers,
    settings: ManagerSettings,
    references: ReferencePolicy,
) -> Controller:
    """Register handlers and return the controller `name`, which is not started.

    `resources` watches the custom resources, `owned` the Jobs created for them. `references`: see `JobOwner`.
    """
    owners = resources.lister_for(kind.resource)
    caches = JobCaches(owners, owned.lister_for(JOBS), resources.lister_for(TIDB_CLUSTERS))
    controller = runtime.controller(name, JobOwnerSync(kind, caches, runtime, settings, references))
    runtime.enqueue_objects(resources, kind.resource, controller.enqueue)
    owned.informer_for(JOBS).add_event_handler(enqueue_owner(kind.resource, owners, controller.enqueue), NO_RESYNC)
    elsewhere = References(_cluster_elsewhere)
    resources.informer_for(kind.resource).add_event_handler(elsewhere.noting(), NO_RESYNC)
    consenting = elsewhere.enqueueing(controller.enqueue, consents_differ)
    resources.informer_for(TIDB_CLUSTERS).add_event_handler(consenting, NO_RESYNC)
    return controller


def _cluster_elsewhere(owner: Object) -> list[str]:
    """The key of the TidbCluster that `spec.br` names, if it is in another namespace and must consent."""
    br = (owner.decode().get("spec") or {}).get("br") or {}
    namespace, name = br.get("clusterNamespace") or owner.metadata.namespace, br.get("cluster")
    return [f"{namespace}/{name}"] if name and namespace != owner.metadata.namespace else []
