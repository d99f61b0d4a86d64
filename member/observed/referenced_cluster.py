"""The PD of another TidbCluster that a cluster uses or joins: its existence, and its identity (objects.md 8)."""

from collections.abc import Sequence

from apis.accessor import workloads
from apis.identity import FORCE_PD_BOOTSTRAP, is_abandoned, known_cluster_ids
from apis.tidbcluster import TidbCluster
from dataplane.errors import DataPlaneError
from kube.errors import ApiError
from kube.resources import TIDB_CLUSTERS
from member import api_clients
from member.context import ClusterContext, ReconcileContext
from member.labels import CLUSTER_ID
from member.naming import referenced_cluster
from member.observed.claims import labelled_ids
from member.observed.pods import pods_of
from member.outcome import Done, Failed, Outcome, Refused, Waiting

_FOREIGN = "ForeignPDCluster"

_LOOK_AGAIN = 10.0
"""Seconds until the next check: events of another cluster do not trigger a reconcile of this one."""


def without_pd(ctx: ClusterContext) -> Waiting | None:
    """The wait for a PD that neither the spec nor a referenced cluster has.

    Asks the API server if the referenced cluster is not in the cache. Raises TransportError.
    """
    if not isinstance(ctx.tc, TidbCluster):
        return None
    spec, reference = ctx.tc.spec, ctx.tc.spec.cluster
    if reference is not None and reference.name:
        # with a domain, the other cluster may be in another Kubernetes cluster
        elsewhere = reference.cluster_domain or spec.across_k8s
        return None if elsewhere else _of_another(ctx, reference.namespace or ctx.namespace, reference.name)
    if spec.pd is not None or spec.pd_addresses:
        return None
    return Waiting("NoPD", "the cluster has no PD: add spec.pd, or name a cluster that has one in spec.cluster")


def not_allowed(ctx: ClusterContext) -> Waiting | None:
    """The wait for the consent of a TidbCluster in another namespace that this one joins, or whose PD it uses.

    Raises ApiError, TransportError.
    """
    refusal = api_clients.reference_refusal(ctx) if isinstance(ctx, ReconcileContext) else ""
    return Waiting("ReferenceNotAllowed", refusal, _LOOK_AGAIN) if refusal else None


def observe_joined_pd(ctx: ReconcileContext) -> Outcome:
    """Record the id of the PD cluster that a cluster without its own PD uses; refuse another id (F40, I7).

    The referenced TidbCluster may have been deleted and recreated under its name. The known id comes from the status,
    otherwise from the labels of claims with data, otherwise from the labels of pods. While PD is silent, a refusal
    stays.
    """
    if referenced_cluster(ctx.tc) is None:
        return Done()
    if wait := not_allowed(ctx):
        return wait
    labelled = labelled_ids(ctx) or _ids_of_pods(ctx)
    known = known_cluster_ids(ctx.tc, labelled)
    given_up = not known or is_abandoned(ctx.tc, labelled)
    try:
        found = str(api_clients.pd(ctx).cluster_id())
    except DataPlaneError as error:
        refused = any(condition.reason == _FOREIGN for condition in ctx.tc.status.conditions)
        if refused and not given_up:
            return _foreign(ctx.tc, known, f"last reported another cluster id, and does not answer now ({error})")
        silent = f"PD belongs to {joined_cluster(ctx.tc)}; {error}"
        return Failed("PDUnreachable", silent) if known else Waiting("PDNotAnswering", silent, _LOOK_AGAIN)
    if found in known or given_up or labelled == {found}:
        ctx.status.cluster_id = found
        return Done()
    return _foreign(ctx.tc, known, f"reports cluster id {found}")


def unverified_pd(ctx: ClusterContext) -> Waiting | None:
    """The wait of new pods, in a cluster without its own PD, until PD reports its id: it may be another PD (F40)."""
    observed = ctx.observations.get("pd")
    if not isinstance(ctx.tc, TidbCluster) or referenced_cluster(ctx.tc) is None or not isinstance(observed, Failed):
        return None
    what = "waiting for PD to report its cluster id before adding pods"
    return Waiting(observed.reason, f"{what}: {observed.message}", _LOOK_AGAIN)


def _foreign(tc: TidbCluster, known: Sequence[str], what: str) -> Refused:
    way_out = (
        "no changes are made; restore that PD from its own volumes, name the right cluster in spec.cluster, or, to "
        "use the new PD, delete the volume claims of this cluster and set the annotation "
        f'{FORCE_PD_BOOTSTRAP}: "{known[0]}"'
    )
    belongs = f"but this cluster belongs to {', '.join(known)}"
    return Refused(_FOREIGN, f"PD of {joined_cluster(tc)} {what}, {belongs}: {way_out}")


def _ids_of_pods(ctx: ReconcileContext) -> frozenset[str]:
    """The PD cluster ids in the labels of the components' pods."""
    pods = (pod for workload in workloads(ctx.tc) for pod in pods_of(ctx, workload.name))
    return frozenset(pod.metadata.labels.get(CLUSTER_ID, "") for pod in pods) - {""}


def joined_cluster(tc: TidbCluster) -> str:
    """The cluster that this one joins, or whose PD it uses, as messages name it; empty if there is none."""
    if tc.spec.cluster is None or not tc.spec.cluster.name:
        return ""
    elsewhere = f" at {tc.spec.cluster.cluster_domain}" if tc.spec.cluster.cluster_domain else ""
    return f"TidbCluster {tc.spec.cluster.namespace or tc.metadata.namespace}/{tc.spec.cluster.name}{elsewhere}"


def _of_another(ctx: ClusterContext, namespace: str, name: str) -> Waiting | None:
    cached = ctx.listers.tidb_clusters.get(namespace, name)
    try:
        found = cached or ctx.deps.client.find(TIDB_CLUSTERS, name, namespace)
    except ApiError:
        # this operator has no permission to read it
        return None
    if found is None:
        what = f"spec.cluster names TidbCluster {namespace}/{name}, which does not exist; create it, or correct that"
        return Waiting("NoSuchCluster", what, _LOOK_AGAIN)
    if (found.decode().get("spec") or {}).get("pd") is None:
        what = f"spec.cluster names TidbCluster {namespace}/{name}, which has no PD; name one that has spec.pd"
        return Waiting("NoPD", what, _LOOK_AGAIN)
    return None
