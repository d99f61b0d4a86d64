"""Taking a command off a pod."""

from collections.abc import Sequence

from kube.objects import Object
from kube.resources import PODS
from member.round import Round


def withdraw(round_: Round, pod: Object, keys: Sequence[str]) -> None:
    """Remove annotations of a pod. Raises Conflict when it changed meanwhile, other ApiErrors, TransportError."""
    meta = pod.metadata
    there = {key: meta.annotations[key] for key in keys if key in meta.annotations}
    desired = {"metadata": {"name": meta.name, "namespace": meta.namespace, "annotations": {}}}
    round_.doors.applier.apply(PODS, desired, pod, applied={"metadata": {"annotations": there}})
