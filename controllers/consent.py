"""Permission of references into other namespaces, and the cleanup after a grant is withdrawn.

The operator marks each object that it creates because of a grant, and deletes the object when the grant is withdrawn or
the reference is gone. An object without a mark was created by v1.6, or while the administrator permitted every
reference: it stays unchanged, and the operator stops reading the other namespace
(docs/adr/0013-references-need-consent.md).
"""

from collections.abc import Iterable
from typing import Any

from apis.consent import ALLOWED_FROM, BY_CONSENT, LOOK_AGAIN, Permission, ReferencePolicy, Target, how_to_consent
from apis.tidbcluster import TidbCluster
from controllers.owned_deletion import delete_if
from controllers.simple_kind import Reconcile
from kube.events import NORMAL
from kube.objects import Json, Object
from kube.resources import Resource
from member.labels import with_annotation
from member.outcome import Waiting

MARK = "tidb.pingcap.com/by-consent-of"
"""The annotation of an object that exists because of grants; its value lists the targets of the granted references."""


def consents_differ(old: Object, new: Object) -> bool:
    """True if an update changes which namespaces may refer to an object."""
    return old.metadata.annotations.get(ALLOWED_FROM) != new.metadata.annotations.get(ALLOWED_FROM)


def policy(ctx: Reconcile[Any]) -> ReferencePolicy:
    """The administrator's policy for references into other namespaces."""
    given = ctx.owned.settings
    return given if isinstance(given, ReferencePolicy) else BY_CONSENT


def permission(ctx: Reconcile[Any], target: Target | None, namespace: str) -> Permission:
    """The permission of the owner to refer to `target` in `namespace`; a `target` of None grants nothing."""
    return policy(ctx).judge(ctx.namespace, namespace, target)


def not_allowed(ctx: Reconcile[Any], resource: Resource, namespace: str, name: str) -> Waiting:
    """The wait until the target consents to the reference."""
    return Waiting("ReferenceNotAllowed", how_to_consent(ctx.namespace, resource.kind, namespace, name), LOOK_AGAIN)


def granted_name(kind: str, namespace: str, name: str) -> str:
    """The name of a target in the mark of an object, e.g. `TidbCluster prod/basic`."""
    return f"{kind} {namespace}/{name}"


def granted_by(ctx: Reconcile[Any], cluster: TidbCluster) -> list[str]:
    """The name of `cluster` for `marked`, in a list; an empty list if the reference does not depend on a grant."""
    meta = cluster.metadata
    permitted = permission(ctx, cluster, meta.namespace)
    return [granted_name(cluster.kind, meta.namespace, meta.name)] if permitted is Permission.GRANTED else []


def marked(desired: Json, targets: Iterable[str]) -> Json:
    """The desired object, with an annotation that names the granted targets; unchanged if there are none."""
    text = ",".join(sorted(targets))
    return with_annotation(desired, MARK, text) if text else desired


def marks(found: Object | None) -> frozenset[str]:
    """The granted targets in the annotation of an object."""
    text = found.metadata.annotations.get(MARK, "") if found is not None else ""
    return frozenset(text.split(",")) - {""}


def apply_data(ctx: Reconcile[Any], resource: Resource, desired: Json, granted: Iterable[str]) -> None:
    """Apply the desired Secret or ConfigMap, marked with its grants, and remove all other keys from its data.

    A cluster's certificate thus disappears together with the reference. Raises like `Reconcile.apply`.
    """
    cached = ctx.cached(resource, desired["metadata"]["name"])
    before: Json | None = None
    if cached is not None:
        carried = {key: value for key, value in cached.metadata.annotations.items() if key == MARK}
        before = {"data": cached.decode().get("data") or {}, "metadata": {"annotations": carried}}
    ctx.apply(resource, marked(desired, granted), applied=before)


def withdraw(ctx: Reconcile[Any], resources: Iterable[Resource], named: str = "") -> None:
    """Delete the owner's objects that were created because of grants, except for the target `named`.

    Raises Conflict, other ApiErrors, TransportError.
    """
    client = ctx.owned.runtime.client

    def may_go(live: Object) -> bool:
        return ctx.controls(live) and bool(marks(live) - {named})

    for resource in resources:
        for cached in ctx.lister(resource).list(ctx.namespace):
            if may_go(cached) and delete_if(client, resource, cached.metadata.name, ctx.namespace, may_go):
                why = "its reference no longer exists" if named else "its reference is not allowed"
                what = f"delete {resource.kind} {cached.metadata.name}: {why}"
                ctx.owned.runtime.recorder.event(ctx.owner, NORMAL, "ConsentWithdrawn", what)
