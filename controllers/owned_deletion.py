"""Deletion of objects that an owner has created and no longer wants, after a live read of each (F5)."""

from collections.abc import Callable, Collection
from typing import Any

from controllers.simple_kind import Reconcile
from kube.client import Client
from kube.deletion import Destroyer
from kube.events import NORMAL
from kube.objects import Object
from kube.resources import Resource


def delete_if(client: Client, resource: Resource, name: str, namespace: str, may_go: Callable[[Object], bool]) -> bool:
    """Delete an object if `may_go` is True for its live state; return True if it was deleted.

    Raises Conflict, other ApiErrors, TransportError.
    """
    destroyer = Destroyer(client)
    seen = destroyer.observe(resource, name, namespace)
    if seen is None or seen.object.metadata.deletion_timestamp or not may_go(seen.object):
        return False
    destroyer.delete(seen, propagation="Background")
    return True


def prune(ctx: Reconcile[Any], resource: Resource, wanted: Collection[str]) -> None:
    """Delete the owner's objects whose names are not in `wanted`, once a live read of the owner confirms the wish.

    Claims have no owner, so they stay. Raises OwnerGone, Conflict, other ApiErrors, TransportError.
    """
    runtime = ctx.owned.runtime
    found = [obj for obj in ctx.lister(resource).list(ctx.namespace) if obj.metadata.name not in wanted]
    unwanted = [obj for obj in found if ctx.controls(obj) and not obj.metadata.deletion_timestamp]
    if not unwanted or not ctx.is_confirmed():
        # the change of an outdated owner starts another reconcile
        return
    for name in (obj.metadata.name for obj in unwanted):
        if delete_if(runtime.client, resource, name, ctx.namespace, ctx.controls):
            what = f"delete {resource.kind} {name} in {ctx.owned.resource.kind} {ctx.name} successful"
            runtime.recorder.event(ctx.owner, NORMAL, "SuccessfulDelete", what)
