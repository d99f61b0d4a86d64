"""The stage `meta`: ids of the data plane as labels on pods, claims and volumes (lifecycle.md 11.4).

A pod's labels come from the status, a claim's from its pod, a volume's from its claim. The stage also restores labels
and annotations of pods that other clients changed, without a restart (R27). It runs while the cluster is paused,
because labels change no member.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter

from apis import pod_commands
from apis.components import component_names
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member import labels
from member.context import ClusterContext, ReconcileContext
from member.naming import referenced_cluster
from member.observed.claims import own_claims
from member.observed.pods import labelled_pods, live_revisions
from member.observed.referenced_cluster import without_pd
from member.outcome import Done, Failed, NotDone, Outcome, in_time_for
from member.stores.reports import without_store
from meta import identity
from meta.apart import conclude_all
from meta.metadata import DesiredMetadata, apply_metadata
from meta.reading import claims_of_cluster, retry_on_conflict
from meta.templates import of_template, stateful_sets, unlabelled_pods


async def act(ctx: ClusterContext) -> Outcome:
    """Write missing and wrong labels. Raises ApiError, TransportError."""
    sets = stateful_sets(ctx)
    known = labelled_pods(ctx).own
    found = [*known, *unlabelled_pods(ctx, sets, {pod.metadata.name for pod in known})]
    # pods that are being deleted keep their labels
    pods = [pod for pod in found if not pod.metadata.deletion_timestamp]
    cluster_id, unknown = _cluster_id(ctx, pods)
    with_claims = component_names(attrgetter("claims.labelled"), ctx.tc.kind)
    claims = {claim.metadata.name: claim for claim in claims_of_cluster(ctx, with_claims)}
    begun = {name for name, claim in claims.items() if pod_commands.REPLACEMENT_BEGUN in claim.metadata.annotations}
    joining: list[Done] = []

    async def look(pod: Object) -> None:
        if begun and not begun.isdisjoint(own_claims(pod)):
            await _remind(ctx, pod)
        own = _identity(ctx, pod, cluster_id)
        if time := identity.joins_within(pod, own, ctx.deps.clock.wall):
            joining.append(Done(retry_after=time))
            return
        labelled = await _label_pod(ctx, pod, cluster_id, sets, own)
        if labelled is not None and labelled.metadata.labels.get(labels.COMPONENT) in with_claims:
            await _label_claims(ctx, labelled, claims)

    await conclude_all(look(pod) for pod in pods)
    return in_time_for(unknown or Done(), *joining)


def _cluster_id(ctx: ClusterContext, pods: Sequence[Object]) -> tuple[str, NotDone | None]:
    """The cluster id, empty while unknown, and why it is unknown if pods therefore stay unlabelled.

    It is in the status, even for a cluster that uses another cluster's PD.
    """
    known = ctx.tc.status.cluster_id
    if known or not isinstance(ctx, ReconcileContext) or referenced_cluster(ctx.tc) is None:
        return known, None
    observed = ctx.observations.get("pd")
    if not isinstance(observed, Failed) or all(labels.CLUSTER_ID in pod.metadata.labels for pod in pods):
        return "", None
    unknown = Failed(observed.reason, f"cannot set the label {labels.CLUSTER_ID}: {observed.message}")
    return "", without_pd(ctx) or unknown


async def _remind(ctx: ClusterContext, pod: Object) -> None:
    """Restore the annotation of a recreated pod whose volumes are being replaced (`member.commands`)."""
    metadata = DesiredMetadata(annotations={pod_commands.REPLACEMENT_BEGUN: "true"})
    await retry_on_conflict(ctx, PODS, pod, lambda there: apply_metadata(PODS, there, metadata))


def _identity(ctx: ClusterContext, pod: Object, cluster_id: str, kind: str = "") -> DesiredMetadata:
    now = ctx.deps.clock.wall

    def missing_for() -> float:
        return without_store(ctx, pod) if isinstance(ctx, ReconcileContext) else 0.0

    return identity.of_pod(ctx.tc, cluster_id, pod, now, missing_for, kind=kind)


async def _label_pod(
    ctx: ClusterContext, pod: Object, cluster_id: str, sets: Mapping[str, Json], own: DesiredMetadata
) -> Object | None:
    """The labelled pod, or None if it is gone. `own` is the identity of the pod by its labels."""

    def desired(there: Object) -> DesiredMetadata:
        template = of_template(sets, there, partial(live_revisions, ctx))
        kind = template.labels.get(labels.COMPONENT, "")
        is_as_labelled = there is pod and kind in ("", there.metadata.labels.get(labels.COMPONENT))
        mine = own if is_as_labelled else _identity(ctx, there, cluster_id, kind)
        return mine.beside(template)

    wanted = desired(pod)
    if wanted.matches(pod):
        return pod
    return await retry_on_conflict(
        ctx, PODS, pod, lambda there: apply_metadata(PODS, there, wanted if there is pod else desired(there))
    )


async def _label_claims(ctx: ClusterContext, pod: Object, claims: Mapping[str, Object]) -> None:
    """Label the claims of a pod; `claims` are the cached ones by name."""
    names = own_claims(pod)
    metadata = identity.of_claim(ctx.tc, pod) if names else DesiredMetadata()
    for name in names:
        # a claim that is older than its pod has no labels yet, so the cache lacks it
        claim = claims.get(name) or ctx.deps.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
        if claim is None or metadata.matches(claim):
            continue
        await retry_on_conflict(
            ctx,
            PERSISTENT_VOLUME_CLAIMS,
            claim,
            lambda there: apply_metadata(PERSISTENT_VOLUME_CLAIMS, there, metadata),
        )
