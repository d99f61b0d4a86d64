"""The status, patched alone: the user's spec is never written."""

from controllers.errors import RequeueError
from kube.apply import Applier
from kube.errors import Conflict, NotFound
from kube.objects import Json, Object
from kube.resources import Resource


def patch_status(applier: Applier, resource: Resource, owner: Object, old: Json, new: Json) -> Object | None:
    """Write what differs from `old`, the status of `owner`; the object as it is then, None when nothing differs.

    Raises RequeueError when somebody else has written since, other ApiErrors, TransportError.
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
        # F3: somebody was faster, or it is gone; an event brings it back when the cache shows that
        raise RequeueError(type(error).__name__, f"could not write the status: {error}") from error
