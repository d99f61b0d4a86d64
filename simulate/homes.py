"""Where a component is at home in plans: the smallest cluster that has it, and how users change it there."""

from collections.abc import Iterator
from dataclasses import dataclass

from apis.components import DM_CLUSTER, component_type
from apis.crd import KINDS, definition
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.components import workload_names
from simulate.components import managed_components
from simulate.invariants.facts import spec_of
from simulate.other_kinds import made, name_of, spec_of_kind
from simulate.plan import Edit
from simulate.trees import difference, merged
from simulate.worlds import CLUSTERS, replicas_of

SMALL = "small"
"""The cluster of PD, TiKV and TiDB alone."""

_DM_IS_READY = 60.0
"""Seconds after which a DMCluster that a plan makes is Ready."""


@dataclass(frozen=True, slots=True)
class Home:
    """A component in a `cluster` of `simulate.worlds`; one of DM is in the DMCluster that the plan makes beside it."""

    component: str
    cluster: str

    @property
    def is_of_dm(self) -> bool:
        """Whether it is in a DMCluster."""
        return component_type(self.component).of == DM_CLUSTER

    @property
    def target(self) -> str:
        """The cluster as plans name it; empty where it is the one that they are about."""
        return f"{DM_CLUSTERS}/{name_of(DM_CLUSTERS)}" if self.is_of_dm else ""

    @property
    def begins_at(self) -> float:
        """Seconds after which it is there."""
        return _DM_IS_READY if self.is_of_dm else 0.0

    @property
    def made(self) -> tuple[Edit, ...]:
        """What a plan begins with."""
        return (made(1.0, DM_CLUSTERS),) if self.is_of_dm else ()

    @property
    def section(self) -> Json:
        """What the spec says of the component where plans begin."""
        if self.is_of_dm:
            found: Json = spec_of_kind(DM_CLUSTERS)[self.part]
            return found
        return spec_of(CLUSTERS[self.cluster](), self.component)

    def merge(self, at: float, change: Json) -> Edit:
        """What is merged into the section; of a list of sections, into the one where plans begin."""
        if not self._is_listed:
            return self._edit(at, {self.part: change})
        return self.replace(at, self.section, merged(self.section, change))

    def replace(self, at: float, before: Json, after: Json) -> Edit:
        """The section as it is becomes another one."""
        if not self._is_listed:
            return self._edit(at, {self.part: difference(before, after)})
        entries = CLUSTERS[self.cluster]()["spec"][self.part]
        return self._edit(at, {self.part: [after if each["name"] == self.component else each for each in entries]})

    @property
    def part(self) -> str:
        """The field of the spec in which the section is."""
        (part,) = component_type(self.component).slot.tree({})
        return part

    @property
    def _is_listed(self) -> bool:
        return isinstance(component_type(self.component).slot.tree({})[self.part], list)

    def _edit(self, at: float, spec: Json) -> Edit:
        return Edit(at=at, target=self.target, spec=spec)


def home_of(component: str) -> Home:
    """The smallest cluster that has it; PD, TiKV and TiDB are in one of 3/3/2."""
    row = component_type(component)
    if row.of == DM_CLUSTER:
        return Home(component, "tiny")
    if component in replicas_of(SMALL):
        return Home(component, SMALL)
    (part,) = row.slot.tree({})
    return Home(component, f"mix+{part}")


def all_components() -> tuple[str, ...]:
    """The components that have a home: those of TidbClusters, then DM's."""
    return (*managed_components(), *workload_names(DM_CLUSTER))


def fields_of(component: str) -> Iterator[tuple[str, Json]]:
    """The fields of a section without fields of their own, by path with dots, and their schemas in the CRD."""
    row = component_type(component)
    version = definition(next(each for each in KINDS if each.name == row.of))["spec"]["versions"][0]
    ((part, tree),) = row.slot.tree({}).items()
    found = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][part]
    yield from _leaves("", found["items"] if isinstance(tree, list) else found)


def _leaves(path: str, node: Json) -> Iterator[tuple[str, Json]]:
    if "properties" not in node:
        yield path, node
        return
    for name, inner in node["properties"].items():
        yield from _leaves(f"{path}.{name}".removeprefix("."), inner)
