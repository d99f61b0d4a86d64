"""The event handlers that enqueue DMClusters (other-resources.md 1, 6). Handlers only compute keys (CW-2)."""

from apis.dmcluster import DMCluster
from controllers.child_events import news_of_claim, news_of_pod, of_clusters_of, seen_of_claim, seen_of_pod
from controllers.enqueueing import Enqueue
from informers.handlers import ResourceEventHandlerDetailedFuncs
from kube.objects import Object
from kube.reading import Lister
from member.labels import INSTANCE, MANAGED_BY, NAME, TIDB_OPERATOR


def of_pods(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the DMCluster of a pod's labels when fields that decisions read change."""
    return of_clusters_of(lambda pod: clusters_of(clusters, pod), enqueue, seen_of_pod, news_of_pod)


def of_claims(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """Like `of_pods`, for volume claims, which have no owner and outlive their pods."""
    return of_clusters_of(lambda claim: clusters_of(clusters, claim), enqueue, seen_of_claim, news_of_claim)


def clusters_of(clusters: Lister, obj: Object) -> list[Object]:
    """The DMCluster to which an object belongs by its labels, in a list; empty if there is none."""
    carried = obj.metadata.labels
    if carried.get(MANAGED_BY) != TIDB_OPERATOR or carried.get(NAME) != DMCluster.LABELLED_NAME:
        return []
    found = clusters.get(obj.metadata.namespace, carried.get(INSTANCE, ""))
    return [] if found is None else [found]
