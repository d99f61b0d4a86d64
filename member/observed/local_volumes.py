"""Volumes on the disk of one machine, and the state of that machine. Reads caches only."""

from collections.abc import Iterator

import msgspec

from kube.objects import Object
from member.context import ClusterContext
from member.observed.claims import Claim, claims_of
from member.observed.nodes import Node, NodeState

_HOSTNAME = "kubernetes.io/hostname"


class _Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[_Requirement, ...] = ()


class _NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: tuple[_Term, ...] = ()


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _NodeSelector = msgspec.field(default_factory=_NodeSelector)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity = msgspec.field(default_factory=_NodeAffinity)


class _Volume(msgspec.Struct, frozen=True):
    """The part of a PersistentVolume that decisions read."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


def is_stranded(ctx: ClusterContext, pod: Object) -> bool:
    """True if no machine that has a volume of the pod is Ready: the pod can run nowhere.

    False if the operator may not read nodes and volumes.
    """
    volumes, nodes = ctx.listers.persistent_volumes, ctx.listers.nodes
    if volumes is None or nodes is None:
        return False
    ready = {
        node.metadata.labels.get(_HOSTNAME, "")
        for node in nodes.list()
        if node.decode_as(Node).state is NodeState.READY
    }
    names = (claim.decode_as(Claim).spec.volume_name for claim in claims_of(ctx, pod))
    found = (volumes.get("", name) for name in names if name)
    hosts = (set(_hosts(volume)) for volume in found if volume is not None)
    return any(each and not each & ready for each in hosts)


def _hosts(volume: Object) -> Iterator[str]:
    """The machines from which a volume can be used; none if the volume is not tied to machines."""
    for term in volume.decode_as(_Volume).spec.node_affinity.required.node_selector_terms:
        for each in term.match_expressions:
            if each.key == _HOSTNAME and each.operator == "In":
                yield from each.values
