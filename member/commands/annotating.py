"""The removal of a command's annotations."""

from collections.abc import Sequence

from kube.objects import Object
from kube.resources import PODS, Resource
from member.context import ClusterContext


def withdraw(ctx: ClusterContext, carrier: Object, keys: Sequence[str], resource: Resource = PODS) -> None:
    """Remove annotations of a pod, or of another resource.

    Raises Conflict if the object has changed meanwhile, other ApiErrors, TransportError.
    """
    meta = carrier.metadata
    there = {key: meta.annotations[key] for key in keys if key in meta.annotations}
    desired = {"metadata": {"name": meta.name, "namespace": meta.namespace, "annotations": {}}}
    ctx.deps.applier.apply(resource, desired, carrier, applied={"metadata": {"annotations": there}})
