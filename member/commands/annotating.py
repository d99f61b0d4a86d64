"""Taking a command off a pod, and what else goes with it."""

from collections.abc import Sequence

from kube.objects import Object
from kube.resources import PODS, Resource
from member.round import Round


def withdraw(round_: Round, carrier: Object, keys: Sequence[str], resource: Resource = PODS) -> None:
    """Remove annotations of a pod, or of another resource.

    Raises Conflict when it changed meanwhile, other ApiErrors, TransportError.
    """
    meta = carrier.metadata
    there = {key: meta.annotations[key] for key in keys if key in meta.annotations}
    desired = {"metadata": {"name": meta.name, "namespace": meta.namespace, "annotations": {}}}
    round_.doors.applier.apply(resource, desired, carrier, applied={"metadata": {"annotations": there}})
