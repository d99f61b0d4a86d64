"""Writing the objects of a cluster, and telling the user about it (objects.md 2.3, 6.5, 11)."""

from collections.abc import Mapping

from kube.errors import AlreadyExists, ApiError, NotFound
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import SERVICES, TIDB_CLUSTERS, Resource
from member.records import applied, stamped
from member.round import Round
from member.services import keep_allocated


class OwnerGone(Exception):
    """Raised instead of acting for a TidbCluster that, read live, is deleted or another one (F4)."""


def apply(
    round_: Round, resource: Resource, desired: Json, cached: Object | None, *, applied_before: Json | None = None
) -> None:
    """Create the object, or patch what differs; a creation is told as an event, and so is its refusal.

    `cached` is None when the cache lacks it, which may mean that it is only unseen.
    Raises OwnerGone, ForeignOwner, ApiError, TransportError.
    """
    if cached is None:
        try:
            _create(round_, resource, desired)
        except AlreadyExists:
            meta = desired["metadata"]
            cached = round_.doors.client.get(resource, meta["name"], meta["namespace"])
        else:
            return
    round_.doors.applier.apply(resource, desired, cached, applied=applied_before)


def apply_service(round_: Round, desired: Json) -> None:
    """Bring one Service to what is desired; ports and addresses that Kubernetes allocated stay."""
    cached = round_.listers.services.get(round_.namespace, desired["metadata"]["name"])
    live = cached.decode() if cached else None
    if live is not None:
        desired = keep_allocated(desired, live)
    before = applied(live) if live is not None else None
    apply(round_, SERVICES, stamped(desired, live), cached, applied_before=before)


def _create(round_: Round, resource: Resource, desired: Json) -> None:
    require_owner(round_)
    what = f"create {resource.kind} {desired['metadata']['name']} in TidbCluster {round_.name}"
    tell = round_.doors.recorder.event
    try:
        round_.doors.applier.create(resource, desired)
    except AlreadyExists:
        raise
    except ApiError as error:
        tell(round_.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
        raise
    tell(round_.owner, NORMAL, "SuccessfulCreate", f"{what} successful")


def annotate_owner(round_: Round, annotations: Mapping[str, str | None]) -> None:
    """Bring annotations of the TidbCluster to what is given, None removes; nothing else of it is written.

    The rest of the round goes on with the TidbCluster as it is then. Raises Conflict, other ApiErrors, TransportError.
    """
    there = round_.owner.metadata.annotations
    removed = {key: there[key] for key, value in annotations.items() if value is None and key in there}
    wanted = {key: value for key, value in annotations.items() if value is not None}
    if not removed and wanted.items() <= there.items():
        return
    meta = {"name": round_.name, "namespace": round_.namespace}
    round_.owner = round_.doors.applier.apply(
        TIDB_CLUSTERS,
        {"metadata": meta | {"annotations": wanted}},
        round_.owner,
        applied={"metadata": {"annotations": removed}},
    )
    round_.tc.metadata.annotations = dict(round_.owner.metadata.annotations)


def told_deletion(round_: Round, resource: Resource, name: str) -> None:
    """Tell as an event that an object was deleted (lifecycle.md 15)."""
    what = f"delete {resource.kind} {name} in TidbCluster {round_.name} successful"
    round_.doors.recorder.event(round_.owner, NORMAL, "SuccessfulDelete", what)


def require_owner(round_: Round) -> None:
    """Look live, once in a round, whether there still is a cluster to create or delete something for (F4).

    Raises OwnerGone, ApiError, TransportError.
    """
    if round_.owner_lives:
        return
    meta = round_.owner.metadata
    try:
        live = round_.doors.client.get(TIDB_CLUSTERS, meta.name, meta.namespace).metadata
    except NotFound:
        raise OwnerGone("the TidbCluster was deleted; waiting until the cache shows it") from None
    if live.uid != meta.uid or live.deletion_timestamp:
        raise OwnerGone("the TidbCluster is being deleted or was made anew; waiting until the cache shows it")
    round_.owner_lives = True
