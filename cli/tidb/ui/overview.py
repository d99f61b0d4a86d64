"""All clusters that the user may read, those first that need attention."""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.failures import Failure
from cli.tidb.clusters import KINDS, read_cluster
from cli.tidb.status.report import Summary, Unread
from cli.tidb.status.reporting import summary
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.objects import Object
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Overview:
    """The clusters, and what could not be read."""

    clusters: Sequence[Summary]
    unread: Sequence[Unread]

    @property
    def ready(self) -> int:
        """The number of Ready clusters."""
        return sum(cluster.ready for cluster in self.clusters)

    @property
    def needing_user(self) -> int:
        """The number of clusters that do not continue without their user."""
        return sum(map(needs_user, self.clusters))


def needs_user(cluster: Summary) -> bool:
    """True if a wait of the cluster does not end by itself."""
    return any(wait.needs_user for wait in cluster.waits)


def read_overview(client: Client, asked: str, own: str) -> Overview:
    """The clusters of the namespace `asked`; if it is empty, of all, or of the namespace `own` if only that is allowed.

    Raises ApiError, TransportError.
    """
    unread, namespaces = list[Unread](), [asked] if asked else ["", own]
    found = [(kind, obj) for kind in KINDS for obj in _listed(client, kind, namespaces, unread)]
    clusters = list[Summary]()
    for kind, each in found:
        try:
            clusters.append(summary(read_cluster(kind, each)))
        except Failure as failure:
            # a failure for one cluster must not hide the others
            unread.append(Unread(f"{kind.kind} {each.key}", str(failure)))
    return Overview(sorted(clusters, key=_urgency), unread)


def _listed(client: Client, kind: Resource, namespaces: Sequence[str], unread: list[Unread]) -> Sequence[Object]:
    """The clusters of a kind in the first of the namespaces that may be read; an empty name means all."""
    for namespace in namespaces:
        try:
            return client.list_page(kind, namespace).items
        except Forbidden:
            where = f"namespace {namespace}" if namespace else "all namespaces"
            unread.append(Unread(f"{kind.plural} of {where}", "you may not list them"))
        except NotFound:
            unread.append(Unread(kind.plural, "this API server does not have them"))
            break
    return []


def _urgency(cluster: Summary) -> tuple[bool, bool, str, str]:
    return not needs_user(cluster), cluster.ready, cluster.namespace, cluster.name
