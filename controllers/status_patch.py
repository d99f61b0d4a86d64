"""Patches of the status alone: the operator never writes the user's spec."""

from controllers.errors import RequeueError
from kube.apply import Applier
from kube.errors import Conflict, NotFound
from kube.objects import Json, Object
from kube.resources import Resource


def patch_status(applier: Applier, resource: Resource, owner: Object, old: Json, new: Json) -> Object | None:
    """Write what differs from `old`, the status of `owner`; return the written object, None if nothing differs.

    Raises RequeueError if another client has written since, other ApiErrors, TransportError.
    """
    meta = owner.metadata
    try:
        return applier.patch_status(
            resource,
            meta.name,
            meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            old=old,
            new=new,
            subresource=applier.has_status_subresource(resource),
        )
    except (Conflict, NotFound) as error:
        # F3: another client has changed or deleted the object; the event enqueues it when the cache shows that
        raise RequeueError(type(error).__name__, f"could not write the status: {error}") from error
