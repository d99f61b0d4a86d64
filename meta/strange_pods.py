"""The stage `strange_pods`: foreign pods with the labels of this cluster's components (R27).

Services select pods by these labels and so route some requests to such a pod. Its labels belong to its owner, and only
the owner can correct them.
"""

from collections.abc import Iterator

from apis.components import component_names
from apis.identity import instance_name
from kube.objects import Object
from member import labels
from member.context import ClusterContext
from member.observed.instances import clusters_of_instance
from member.observed.pod import Pod
from member.observed.pods import is_pod_of, labelled_pods
from member.outcome import Done, Outcome, Refused

_LOOK_AGAIN = 30.0


def act(ctx: ClusterContext) -> Outcome:
    """Report foreign pods that are Ready, and so receive requests of Services. Reads only caches."""
    found = sorted(pod.metadata.name for pod in _strange(ctx) if pod.decode_as(Pod).is_ready)
    if not found:
        return Done()
    what = f"pod {', '.join(found)} carries the labels of pods of this cluster and receives requests meant for them"
    return Refused("PodsOfOthers", f"{what}; change its labels, or delete it", _LOOK_AGAIN)


def _strange(ctx: ClusterContext) -> Iterator[Object]:
    """The pods with a component's labels that no cluster of this instance has created."""
    others = labelled_pods(ctx).others
    names = _sharing(ctx) if others else ()
    for pod in others:
        is_known = any(is_pod_of(name, pod) for name in names)
        if not is_known and pod.metadata.labels.get(labels.COMPONENT) in component_names(of=ctx.tc.kind):
            yield pod


def _sharing(ctx: ClusterContext) -> list[str]:
    """The other clusters with the same instance name; only TidbClusters can share one."""
    if not ctx.tc.HAS_INSTANCE_LABEL:
        return []
    sharing = clusters_of_instance(ctx.listers.tidb_clusters, ctx.namespace, instance_name(ctx.tc))
    return [cluster.metadata.name for cluster in sharing]
