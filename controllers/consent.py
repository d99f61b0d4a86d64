"""References of an object into other namespaces: whether they are permitted, and what goes with a grant.

What is made on the strength of a grant is marked, and is deleted when the grant is withdrawn. What carries no mark was
made by v1.6, or while the administrator permitted everything: it stays as it is, and no more of the other namespace is
read (docs/adr/0013-references-need-consent.md).
"""

from collections.abc import Iterable
from typing import Any

from apis.consent import ALLOWED_FROM, BY_CONSENT, Permission, ReferencePolicy, Target, how_to_consent
from apis.tidbcluster import TidbCluster
from controllers.owned_deletion import delete_if
from controllers.simple_kind import Reconcile
from kube.events import NORMAL
from kube.objects import Json, Object
from kube.resources import Resource
from member.labels import with_annotation
from member.outcome import Waiting

MARK = "tidb.pingcap.com/by-consent-of"
"""On what the operator made: the targets whose owners, or the administrator, had granted the reference."""

_LOOK_AGAIN = 10.0
"""Seconds until the operator reads a target again whose changes are no events, such as a ConfigMap of a user."""


def consents_differ(old: Object, new: Object) -> bool:
    """Whether an update changes who may refer to an object."""
    return old.metadata.annotations.get(ALLOWED_FROM) != new.metadata.annotations.get(ALLOWED_FROM)


def policy(ctx: Reconcile[Any]) -> ReferencePolicy:
    """Which references the administrator permits."""
    given = ctx.owned.settings
    return given if isinstance(given, ReferencePolicy) else BY_CONSENT


def permission(ctx: Reconcile[Any], target: Target | None, namespace: str) -> Permission:
    """Whether the owner may refer to an object of a namespace; one that does not exist consents to nothing."""
    return policy(ctx).judge(ctx.namespace, namespace, target)


def not_allowed(ctx: Reconcile[Any], resource: Resource, namespace: str, name: str) -> Waiting:
    """The wait for the consent of a target."""
    return Waiting("ReferenceNotAllowed", how_to_consent(ctx.namespace, resource.kind, namespace, name), _LOOK_AGAIN)


def granted_by(ctx: Reconcile[Any], cluster: TidbCluster) -> list[str]:
    """The cluster, as marks name it, if the owner refers to it on the strength of a grant."""
    meta = cluster.metadata
    permitted = permission(ctx, cluster, meta.namespace)
    return [f"{cluster.kind} {meta.namespace}/{meta.name}"] if permitted is Permission.GRANTED else []


def marked(desired: Json, targets: Iterable[str]) -> Json:
    """An object that names the granted targets on whose strength it is made."""
    text = ",".join(sorted(targets))
    return with_annotation(desired, MARK, text) if text else desired


def marks(found: Object | None) -> frozenset[str]:
    """The granted targets that an object names."""
    text = found.metadata.annotations.get(MARK, "") if found is not None else ""
    return frozenset(text.split(",")) - {""}


def apply_data(ctx: Reconcile[Any], resource: Resource, desired: Json, granted: Iterable[str]) -> None:
    """Bring a Secret or ConfigMap to what is desired, marked with its grants; nothing else stays in its data.

    So the certificate of a cluster goes when the reference goes. Raises as `Reconcile.apply`.
    """
    cached = ctx.cached(resource, desired["metadata"]["name"])
    before: Json | None = None
    if cached is not None:
        carried = {key: value for key, value in cached.metadata.annotations.items() if key == MARK}
        before = {"data": cached.decode().get("data") or {}, "metadata": {"annotations": carried}}
    ctx.apply(resource, marked(desired, granted), applied=before)


def withdraw(ctx: Reconcile[Any], resources: Iterable[Resource]) -> None:
    """Delete what was made for the owner on the strength of a grant that was withdrawn.

    Raises Conflict, other ApiErrors, TransportError.
    """
    client = ctx.owned.runtime.client

    def may_go(live: Object) -> bool:
        return ctx.controls(live) and bool(marks(live))

    for resource in resources:
        for cached in ctx.lister(resource).list(ctx.namespace):
            if may_go(cached) and delete_if(client, resource, cached.metadata.name, ctx.namespace, may_go):
                what = f"delete {resource.kind} {cached.metadata.name}: the reference it was made for is not allowed"
                ctx.owned.runtime.recorder.event(ctx.owner, NORMAL, "ConsentWithdrawn", what)
