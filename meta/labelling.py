"""The stage `meta`: the ids of the data plane as labels on pods, claims and volumes (lifecycle.md 11.4).

A pod gets them from the status, a claim from its pod, a volume from its claim. It also runs while the cluster is
paused: labels change no member.
"""

from collections.abc import Sequence

from apis.identity import instance_name
from dataplane.errors import DataPlaneError
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from member import labels, reach
from member.claims import Claim, own_claims
from member.naming import referenced_cluster
from member.outcome import Done, Failed, Outcome
from member.round import Round
from meta import identity
from meta.looking import claims_of_cluster, live, on_current, volume_of
from meta.marking import Marks, mark

_WITH_CLAIMS = ("pd", "tikv", "tiflash", "pump", "tidb", "ticdc")


def act(round_: Round) -> Outcome:
    """Label what is not labelled as it should be. Raises ApiError, TransportError."""
    pods = _pods(round_)
    cluster_id, unknown = _cluster_id(round_, pods)
    claims = {claim.metadata.name: claim for claim in claims_of_cluster(round_, _WITH_CLAIMS)}
    begun = {name for name, claim in claims.items() if labels.REPLACEMENT_BEGUN in claim.metadata.annotations}
    for pod in pods:
        if begun and not begun.isdisjoint(own_claims(pod)):
            _remind(round_, pod)
        labelled = _label_pod(round_, pod, cluster_id)
        if labelled is not None and labelled.metadata.labels.get(labels.COMPONENT) in _WITH_CLAIMS:
            _label_claims(round_, labelled, claims)
    if round_.listers.persistent_volumes is not None:
        for claim in claims.values():
            _label_volume(round_, claim)
    return unknown or Done()


def _pods(round_: Round) -> list[Object]:
    """All pods of the cluster, Discovery's included, but those that are about to go."""
    selector = {
        labels.NAME: labels.TIDB_CLUSTER,
        labels.MANAGED_BY: labels.TIDB_OPERATOR,
        labels.INSTANCE: instance_name(round_.tc),
    }
    found = round_.listers.pods.list(round_.namespace, selector)
    return sorted((pod for pod in found if not pod.metadata.deletion_timestamp), key=lambda pod: pod.metadata.name)


def _cluster_id(round_: Round, pods: Sequence[Object]) -> tuple[str, Failed | None]:
    """The id to write, empty when the labels can stay or it is not known yet, and why it can't be known.

    Without a PD of its own a cluster has no id in its status: the other cluster's PD is asked, once per pod.
    """
    known = round_.status.cluster_id
    if known or referenced_cluster(round_.tc) is None:
        return known, None
    if all(labels.CLUSTER_ID in pod.metadata.labels for pod in pods):
        return "", None
    try:
        return str(reach.pd(round_).cluster_id()), None
    except DataPlaneError as error:
        return "", Failed("PDUnreachable", f"the label {labels.CLUSTER_ID} waits for PD: {error}")


def _remind(round_: Round, pod: Object) -> None:
    """Let a pod that was made anew while its volumes are replaced know that they are (`member.commands`)."""
    marks = Marks(annotations={labels.REPLACEMENT_BEGUN: "true"})
    on_current(round_, PODS, pod, lambda there: mark(round_, PODS, there, marks))


def _label_pod(round_: Round, pod: Object, cluster_id: str) -> Object | None:
    """The labelled pod; None when it is gone, or its time has not come."""
    now = round_.doors.clock.wall()
    if identity.is_about_to_join(pod, identity.of_pod(round_.tc, cluster_id, pod, now), now):
        return None
    return on_current(
        round_, PODS, pod, lambda there: mark(round_, PODS, there, identity.of_pod(round_.tc, cluster_id, there, now))
    )


def _label_claims(round_: Round, pod: Object, claims: dict[str, Object]) -> None:
    """Label the claims of a pod, and leave them in `claims` as they are then."""
    marks = identity.of_claim(round_.tc, pod)
    for name in own_claims(pod):
        # one that was there before its pod carries no label of ours, so the cache lacks it
        claim = claims.get(name) or live(round_, PERSISTENT_VOLUME_CLAIMS, name, round_.namespace)
        labelled = claim and on_current(
            round_,
            PERSISTENT_VOLUME_CLAIMS,
            claim,
            lambda there: mark(round_, PERSISTENT_VOLUME_CLAIMS, there, marks),
        )
        if labelled is not None:
            claims[name] = labelled


def _label_volume(round_: Round, claim: Object) -> None:
    if claim.metadata.deletion_timestamp or not claim.decode_as(Claim).is_bound:
        return
    volume = volume_of(round_, claim)
    if volume is None:
        return
    marks = identity.of_volume(claim)
    on_current(round_, PERSISTENT_VOLUMES, volume, lambda there: mark(round_, PERSISTENT_VOLUMES, there, marks))
