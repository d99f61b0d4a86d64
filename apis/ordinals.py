"""The number of pods of a component, and their ordinals (defaults-and-validation.md 8.3, lifecycle.md 4.2, 4.4).

Delete slots, an annotation with ordinals to skip, need the AdvancedStatefulSet feature: without it a StatefulSet counts
from 0 without gaps, so the annotation is ignored. `gated` decides that for a decoded cluster; all other code asks for
an OrdinalSet (a test forbids `range(replicas)`).
"""

from collections.abc import Collection, Iterator
from typing import TypeVar

import msgspec
from msgspec import structs

from apis.cluster import Cluster
from apis.components import component_names, component_type
from apis.shared import WorkloadSpec

C = TypeVar("C", bound=Cluster)

_SLOTS = msgspec.json.Decoder(list[int] | None)


def slots_annotation(component: str) -> str:
    """The annotation of the TidbCluster with a component's delete slots."""
    return f"{component}.tidb.pingcap.com/delete-slots"


def parse_slots(text: str) -> frozenset[int]:
    """The ordinals in an annotation; `null` means none. Raises ValueError unless it is a JSON list of int32 >= 0."""
    try:
        slots = _SLOTS.decode(text) or []
    except msgspec.MsgspecError:
        raise ValueError("must be a JSON list of integers such as [1,3]") from None
    if any(not 0 <= slot < 2**31 for slot in slots):
        raise ValueError("every ordinal must be between 0 and 2147483647")
    return frozenset(slots)


def gated(tc: C, advanced: bool) -> C:
    """The cluster, whose delete slots count only if the feature AdvancedStatefulSet is on: `advanced`."""
    if tc.metadata.counts_slots == advanced:
        return tc
    return structs.replace(tc, metadata=structs.replace(tc.metadata, counts_slots=advanced))


def delete_slots(tc: Cluster, component: str) -> frozenset[int]:
    """The ordinals to skip; none if they do not count, or if the annotation is one that validation refuses."""
    if not tc.metadata.counts_slots or not component_type(component).has_delete_slots:
        return frozenset()
    text = tc.metadata.annotations.get(slots_annotation(component))
    if text is None:
        return frozenset()
    try:
        return parse_slots(text)
    except ValueError:
        return frozenset()


def ignored_slots(tc: Cluster) -> Iterator[str]:
    """The annotations with delete slots that have no effect, because the cluster's StatefulSets are native."""
    if not tc.metadata.counts_slots:
        known = (
            slots_annotation(name) for name in component_names(of=tc.kind) if component_type(name).has_delete_slots
        )
        yield from (each for each in known if tc.metadata.annotations.get(each, "[]") not in ("[]", "null"))


class OrdinalSet(msgspec.Struct, frozen=True):
    """The pods of a StatefulSet by their ordinals: `replicas` pods that skip `slots`.

    A slot above the highest ordinal has no effect, but takes effect when more replicas reach it (4.4).
    """

    replicas: int
    slots: frozenset[int] = frozenset()

    @classmethod
    def of(cls, ordinals: Collection[int]) -> "OrdinalSet":
        """The set of exactly these pods: every lower ordinal that is missing is a slot."""
        return cls(len(set(ordinals)), frozenset(range(max(ordinals, default=0))).difference(ordinals))

    @property
    def bound(self) -> int:
        """One above the highest ordinal; every lower ordinal is a pod or a slot. 0 without pods."""
        bound = self.replicas
        for slot in sorted(self.slots):
            if slot >= bound:
                break
            bound += 1
        return bound

    def __contains__(self, ordinal: int) -> bool:
        """True if a pod has this ordinal."""
        return ordinal < self.bound and ordinal not in self.slots

    def __iter__(self) -> Iterator[int]:
        """The ordinals of the pods, ascending."""
        return iter(self.ordinals)

    @property
    def ordinals(self) -> list[int]:
        """The ordinals of the pods, ascending."""
        if not self.slots:
            return list(range(self.replicas))
        return [ordinal for ordinal in range(self.bound) if ordinal not in self.slots]

    def steps(self, wanted: "OrdinalSet") -> list["Step"]:
        """The pods that join or, if none joins, those that leave, in the order in which they have to (8.1).

        Joining pods come lowest first, leaving ones highest first. Each step changes one pod, and scaling may stop
        after any. If pods join and others leave, those that leave follow once all have joined.
        """
        here, there = set(self.ordinals), set(wanted.ordinals)
        slots = self.slots | (wanted.slots - here)
        joining = sorted(there - here)
        changing = joining or sorted(here - there, reverse=True)
        replicas, steps = self.replicas, []
        for ordinal in changing:
            if joining:
                replicas, slots = replicas + 1, slots - {ordinal}
            else:
                replicas, slots = replicas - 1, slots | {ordinal}
            steps.append(Step(ordinal, OrdinalSet(replicas, slots)._tidied(wanted)))
        return steps

    def _tidied(self, wanted: "OrdinalSet") -> "OrdinalSet":
        """Without the slots that have no effect, unless they are wanted."""
        bound = self.bound
        return OrdinalSet(self.replicas, frozenset(slot for slot in self.slots if slot < bound or slot in wanted.slots))


class Step(msgspec.Struct, frozen=True):
    """A pod that joins or leaves, and the StatefulSet's pods afterwards."""

    ordinal: int
    after: OrdinalSet


def desired_replicas(tc: Cluster, component: str) -> int:
    """The desired replicas of the StatefulSet: the spec's, substitutes and spares; 0 if absent."""
    return desired_ordinals(tc, component).replicas


def desired_ordinals(tc: Cluster, component: str) -> OrdinalSet:
    """The desired pods of the StatefulSet; none if absent.

    Beyond the spec's, they are substitutes of failed pods, and spares while volumes are replaced one pod at a time. A
    failed pod whose ordinal the user has made a slot has no substitute: it will not return.
    """
    row = component_type(component)
    workload, status = row.slot.spec(tc.spec), row.status(tc.status)
    if not isinstance(workload, WorkloadSpec):
        return OrdinalSet(0)
    slots = delete_slots(tc, component) if tc.metadata.counts_slots else frozenset[int]()
    if status is None:
        return OrdinalSet(workload.replicas, slots)
    failed = status.failed_pods
    if slots:
        given_up = tuple(f"-{slot}" for slot in slots)
        failed = [pod for pod in failed if not pod.endswith(given_up)]
    spares = workload.spare_replicas if status.replaces_volumes else 0
    return OrdinalSet(workload.replicas + len(failed) + spares, slots)


def spec_ordinals(tc: Cluster, component: str) -> OrdinalSet:
    """The pods that the spec alone asks for."""
    workload = component_type(component).slot.spec(tc.spec)
    if not isinstance(workload, WorkloadSpec):
        return OrdinalSet(0)
    return OrdinalSet(workload.replicas, delete_slots(tc, component))
