"""May this pod begin the cluster? (objects.md 10.3, lifecycle.md F40)

A TiDB cluster must be begun once. A second beginning makes a second cluster with an id of its own, and behind one
Service two clusters destroy each other's data. PD has no protection against it; this decision is the protection.

What is known when a pod without data asks, and what can happen at the same time:

- *The cluster exists.* `status.clusterID` is set, or volume claims are labelled with a cluster id, or its stores or its
  members in other Kubernetes clusters are known: nobody begins, whatever else is seen. The labels of the claims outlive
  the status, and the TidbCluster itself. If all volumes of PD are lost, the pods wait until the user restores one or
  says, by an annotation with the very id, that the data is given up.
- *Two pods ask at the same time.* Only the pod of the lowest desired ordinal may begin; the others wait until it
  answers and join it. This needs no memory, so a restart of discovery changes nothing.
- *The beginner crashes before it has written anything and asks again.* It is told the same again; nobody can have
  joined what does not exist.
- *The beginner has begun and does not answer yet,* with or without a restart of discovery meanwhile. It does not ask
  any more, and no other pod may begin.
- *The beginner has begun, others have joined or are joining, the id has not reached the status yet, and the beginner's
  volume is lost.* It asks again, empty. Members that answer are joined. But members that are starting, waiting for
  their quorum, or crash-looping do not answer, and neither do they ask: they have data. Therefore the beginner is
  allowed only when every other desired pod has itself asked within the last minute, and has not been told to join
  since. A question counts only when it is verified as that of the pod (`discovery.askers`). A pod asks only while its
  volume is empty, so at that moment no desired pod has data. Discovery remembers who asked in memory only: after a
  restart it knows nothing, and waits until all have asked again.
- *The TidbCluster was deleted and created again over its old volumes,* one of which is empty: the same rule.
- *OrderedReady.* The other pods are created after the beginner is Ready, so they cannot have asked. Here each of them
  must be absent instead: nobody listens at its address, or its name is unknown. An answer of any kind, a timeout and a
  broken connection are signs of life. A member that is down at that moment is not seen; so with OrderedReady, a lost
  first volume together with an absent status and all other members down at once remains a way to a second cluster.
- *The lowest desired ordinal changes* while the former one is beginning: who was told to begin is remembered, and as
  long as it has not asked again no other pod may begin.
- *PD answers with an error* instead of its members: somebody is alive, nobody begins.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from apis.accessor import component
from apis.cluster import Cluster
from apis.identity import FORCE_PD_BOOTSTRAP, is_abandoned, known_cluster_ids
from apis.ordinals import desired_ordinals
from apis.tidbcluster import TidbCluster
from discovery.asking import Asker


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about the other pods.

    `empty`: pods that have shown that they hold no data. `present`: pods that show signs of life, with what was seen.
    `alive`: what was heard from PD in place of its members; empty when there was silence.
    `bootstrapping`: the pod that was told to begin and has not asked since; empty when there is none.
    `claimed`: the ids of PD clusters that the volume claims are labelled with.
    """

    empty: Collection[str]
    present: Mapping[str, str]
    alive: str
    bootstrapping: str
    claimed: frozenset[str] = frozenset()


def desired_pods(tc: Cluster, advanced: bool, name: str = "pd") -> list[str]:
    """The pods that the StatefulSet of a component should have, lowest ordinal first."""
    return [f"{tc.metadata.name}-{name}-{ordinal}" for ordinal in desired_ordinals(tc, name, advanced=advanced)]


class Claims(Protocol):
    """Reads volume claims."""

    def is_given_up(self, namespace: str, claim: str) -> bool:
        """Whether nobody needs what is in a claim any more, or it is being deleted. Raises ApiError, TransportError."""


def leaving(tc: Cluster, pod: str, pods: Collection[str], claims: Claims, name: str = "pd") -> str:
    """Why a pod may not join; empty when it may.

    One that leaves must not become a member in its last moment: that would go with it, and with that the quorum. Wanted
    again, it still ends, and another of its name takes its place.
    """
    if pod not in pods:
        return f"{pod} is not wanted any more: the spec asks for {', '.join(pods) or 'no pods'}"
    if claims.is_given_up(tc.metadata.namespace, f"{name}-{pod}"):
        return f"{pod} was about to leave: waiting for its volume to be deleted, and for a new pod"
    return ""


def is_ordered(tc: Cluster, name: str = "pd") -> bool:
    """Whether a pod of a component is created only when those before it are Ready."""
    return component(tc, name).pod_management_policy == "OrderedReady"


def obstacle(tc: TidbCluster, asker: Asker, pods: list[str], evidence: Evidence) -> str:
    """Why the asker may not begin the cluster; empty when it may."""
    return _cluster_exists(tc, evidence.claimed) or others_first(tc, asker, pods, evidence)


def others_first(tc: TidbCluster, asker: Asker, pods: list[str], evidence: Evidence) -> str:
    """Which other pods keep the asker from beginning the cluster, whatever is known of that; empty when none does."""
    return (
        not_the_turn(asker.pod, pods, evidence)
        or _others_run(evidence)
        or others_may_have_data(asker.pod, pods, evidence, ordered=is_ordered(tc))
    )


def _cluster_exists(tc: TidbCluster, claimed: Collection[str]) -> str:
    if tc.spec.cluster is not None:
        return f"this cluster is part of {tc.spec.cluster.name}, none of whose members answers"
    if is_abandoned(tc, claimed):
        return ""
    if known := _known_cluster(tc, claimed):
        return known
    if tc.status.pd.peer_members:
        return "the cluster has members in other Kubernetes clusters, but none of them answers"
    return ""


def _known_cluster(tc: TidbCluster, claimed: Collection[str]) -> str:
    """What tells of the cluster in this Kubernetes cluster; empty when nothing does."""
    match known_cluster_ids(tc, claimed):
        case (cluster_id,):
            return (
                f"cluster {cluster_id} exists, but none of its members answers; restore a PD volume, or abandon all "
                f"data with the annotation {FORCE_PD_BOOTSTRAP}: {cluster_id!r}"
            )
        case (_, *_) as ids:
            what = f"there are volumes of clusters {', '.join(ids)}, but no member of any of them answers"
            return f"{what}; delete the PVCs of all clusters but one"
    if stores := sorted((*tc.status.tikv.stores, *tc.status.tiflash.stores), key=int):
        what = f"the cluster has the stores {', '.join(stores)}, but none of its PD members answers"
        return f"{what}; restore status.clusterID"
    return ""


def not_the_turn(asker: str, pods: list[str], evidence: Evidence) -> str:
    """Why another pod than the asker may begin the cluster, if any; empty when it is its turn."""
    if asker not in pods:
        return f"the spec no longer requests {asker}, and no member answers"
    if asker != pods[0]:
        return f"waiting for {pods[0]} to bootstrap the cluster and to answer"
    if evidence.bootstrapping not in ("", asker):
        return f"waiting for {evidence.bootstrapping}, which was allowed to bootstrap the cluster, to answer"
    return ""


def _others_run(evidence: Evidence) -> str:
    return f"a PD that cannot list its members may be running: {evidence.alive}" if evidence.alive else ""


def others_may_have_data(asker: str, pods: list[str], evidence: Evidence, *, ordered: bool) -> str:
    """Which other pods may hold data; empty when none does. `ordered`: they are created one after another."""
    others = [pod for pod in pods if pod != asker and pod not in evidence.empty]
    if ordered:
        seen = [f"{pod} ({evidence.present[pod]})" for pod in others if pod in evidence.present]
        return f"other members may be running: {', '.join(seen)}" if seen else ""
    return (
        f"{', '.join(others)} may hold data; waiting for all pods to ask before bootstrapping the cluster"
        if others
        else ""
    )
