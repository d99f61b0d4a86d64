"""The decision whether a pod may begin the cluster (objects.md 10.3, lifecycle.md F40).

A TiDB cluster must begin once. A second beginning creates a second cluster with its own id, and two clusters behind one
Service destroy each other's data. PD does not prevent this; this decision does.

The state in which a pod without data may ask, and the possible races:

- *The cluster exists.* `status.clusterID` is set, or volume claims have the label of a cluster id, or its stores or its
  members in other Kubernetes clusters are known: no pod begins, whatever else is observed. The labels of the claims
  outlive the status and even the TidbCluster. If all volumes of PD are lost, the pods wait until the user restores one,
  or gives up the data with an annotation that contains this very id.
- *Two pods ask at the same time.* Only the pod with the lowest desired ordinal may begin; the others wait until it
  answers, and join it. This needs no memory, so a restart of discovery changes nothing.
- *The beginner crashes before it has written anything, and asks again.* It gets the same answer; no pod can have joined
  a cluster that does not exist.
- *The beginner has begun and does not answer yet,* with or without a restart of discovery. It no longer asks, and no
  other pod may begin.
- *The beginner has begun, others have joined or are joining, the id has not reached the status yet, and the beginner's
  volume is lost.* It asks again, without data. If members answer, it joins them. But members that are starting, waiting
  for their quorum or crash-looping neither answer nor ask: they have data. The beginner may therefore begin only if
  every other desired pod has asked within the last minute and got no answer since. A question counts only if it is
  verified as the pod's own (`discovery.askers`). A pod asks only while its volume is empty, so at that moment no
  desired pod has data. Discovery remembers the questions only in memory: after a restart it waits until all pods have
  asked again.
- *The TidbCluster was deleted and recreated over its old volumes,* one of which is empty: the same rule.
- *OrderedReady.* The other pods are created only after the beginner is Ready, so they cannot have asked. Instead each
  of them must be absent: its address refuses connections, or its name is unknown. An answer of any kind, a timeout and
  a broken connection are signs of life. A member that is down at that moment goes unnoticed: with OrderedReady, if the
  first volume is lost, the status is empty and all other members are down, a second cluster remains possible.
- *The lowest desired ordinal changes* while the former one is beginning: discovery remembers the beginner, and until it
  asks again no other pod may begin.
- *PD answers with an error* instead of its members: it is alive, so no pod begins.
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
    """Knowledge about the other pods.

    `empty`: pods that have proved that they have no data. `present`: pods with signs of life, and the sign. `alive`:
    PD's answer if it was not a list of members, empty for silence. `bootstrapping`: the pod that may begin and has not
    asked since, or empty. `claimed`: the cluster ids in the labels of the volume claims.
    """

    empty: Collection[str]
    present: Mapping[str, str]
    alive: str
    bootstrapping: str
    claimed: frozenset[str] = frozenset()


def desired_pods(tc: Cluster, name: str = "pd") -> list[str]:
    """The desired pods of a component's StatefulSet, lowest ordinal first."""
    return [f"{tc.metadata.name}-{name}-{ordinal}" for ordinal in desired_ordinals(tc, name)]


class Claims(Protocol):
    """Reads volume claims."""

    def is_given_up(self, namespace: str, claim: str) -> bool:
        """True if the user has given up the data in a claim, or the claim is being deleted. Raises ApiError,
        TransportError.
        """


def leaving(tc: Cluster, pod: str, pods: Collection[str], claims: Claims, name: str = "pd") -> str:
    """Why a pod may not join; empty if it may.

    A leaving pod must not become a member at the last moment, because it would take the quorum with it. If it becomes
    desired again, it still ends, and a new pod with its name replaces it.
    """
    if pod not in pods:
        return f"{pod} is no longer wanted: the spec asks for {', '.join(pods) or 'no pods'}"
    if claims.is_given_up(tc.metadata.namespace, f"{name}-{pod}"):
        return f"{pod} was about to leave: waiting for its volume to be deleted, and for a new pod"
    return ""


def is_ordered(tc: Cluster, name: str = "pd") -> bool:
    """True if a component's pods are created one by one, each after the previous one is Ready."""
    return component(tc, name).pod_management_policy == "OrderedReady"


def obstacle(tc: TidbCluster, asker: Asker, pods: list[str], evidence: Evidence) -> str:
    """Why the asking pod may not begin the cluster; empty if it may."""
    return _cluster_exists(tc, evidence.claimed) or others_first(tc, asker, pods, evidence)


def others_first(tc: TidbCluster, asker: Asker, pods: list[str], evidence: Evidence) -> str:
    """The other pods that keep the asking pod from beginning the cluster, regardless of other evidence;
    empty if none.
    """
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
    """The proof that the cluster exists in this Kubernetes cluster; empty without one."""
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
    """Why another pod may have to begin the cluster; empty if it is the asking pod's turn."""
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
    """The other pods that may hold data; empty if none. `ordered`: pods are created one by one."""
    others = [pod for pod in pods if pod != asker and pod not in evidence.empty]
    if ordered:
        seen = [f"{pod} ({evidence.present[pod]})" for pod in others if pod in evidence.present]
        return f"other members may be running: {', '.join(seen)}" if seen else ""
    return (
        f"{', '.join(others)} may hold data; waiting for all pods to ask before bootstrapping the cluster"
        if others
        else ""
    )
