"""Metrics of single DMClusters, read from the cache at a scrape.

As for TidbClusters, only the leader serves series of clusters.
"""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from apis.accessor import workloads
from apis.decoding import decode
from apis.dmcluster import DMCluster
from apis.predicates import status_of
from apis.problem import InvalidField
from controllers.cluster_samples import Sample, of_members, of_status, readable
from kube.objects import Object
from kube.reading import Lister
from ports.fencing import FenceOf, is_open

_PREFIX = "tidb_operator_dm_cluster_"
_OF_ALL = ("namespace", "name")

_FAMILIES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ready": ((), "1 when the condition Ready is True, else 0."),
    "condition": (("condition", "reason"), "1 when the condition is True, else 0, with its present reason."),
    "observed": (("component",), "1 when the last reconcile could read the members of the component, else 0."),
    "members": (("component",), "Masters or workers that the last reconcile read; absent where it could not."),
    "healthy_members": (("component",), "The healthy ones among ..._members; absent with them."),
    "unavailable": (("component", "reason"), "1 while the component is out of service for that reason; else absent."),
}


class DMClusterMetrics(Collector):
    """The series of single DMClusters."""

    def __init__(self, registry: CollectorRegistry, clusters: Lister, fence_of: FenceOf) -> None:
        """Register; `fence_of` decides which clusters belong to this process."""
        self._clusters, self._fence_of = clusters, fence_of
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All families, with the series of the clusters that belong to this process."""
        families = {
            name: GaugeMetricFamily(_PREFIX + name, text, labels=(*_OF_ALL, *labels))
            for name, (labels, text) in _FAMILIES.items()
        }
        for cluster in (each for each in self._clusters.list() if is_open(self._fence_of(each.key))):
            meta = cluster.metadata
            for name, labels, value in readable(cluster, _samples):
                families[name].add_metric([meta.namespace, meta.name, *labels], value)
        return families.values()


def _samples(cluster: Object) -> Iterator[Sample]:
    tree = cluster.decode()
    yield from of_status(tree.get("status") or {})
    try:
        dc = decode(tree, DMCluster)
    except InvalidField:
        return  # the spec is refused, so its components are unknown
    for component in workloads(dc):
        if status := status_of(dc, component.name):
            yield from of_members(status, component.name)
