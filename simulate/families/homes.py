"""The home of a component in plans: the smallest cluster that has it, and the users' edits there."""

from collections.abc import Iterator
from dataclasses import dataclass

from apis.components import DM_CLUSTER, component_type
from apis.crd import KINDS, definition
from kube.objects import Json
from kube.resources import DM_CLUSTERS
from member.components import workload_names
from simulate.engine.components import managed_components
from simulate.engine.other_kinds import made, name_of, spec_of_kind
from simulate.engine.plan import Edit
from simulate.engine.trees import difference, merged
from simulate.engine.worlds import CLUSTERS, replicas_of
from simulate.invariants.facts import spec_of

SMALL = "small"
"""The cluster with only PD, TiKV and TiDB."""

_DM_IS_READY = 60.0
"""Seconds after which a plan's DMCluster is Ready."""


@dataclass(frozen=True, slots=True)
class Home:
    """A component in a `cluster` of `simulate.engine.worlds`; a DM component is in the DMCluster that the plan creates
    beside it.
    """

    component: str
    cluster: str

    @property
    def is_of_dm(self) -> bool:
        """True if it is in a DMCluster."""
        return component_type(self.component).of == DM_CLUSTER

    @property
    def target(self) -> str:
        """The cluster as plans name it; empty for the plan's own cluster."""
        return f"{DM_CLUSTERS}/{name_of(DM_CLUSTERS)}" if self.is_of_dm else ""

    @property
    def begins_at(self) -> float:
        """Seconds after which it exists."""
        return _DM_IS_READY if self.is_of_dm else 0.0

    @property
    def made(self) -> tuple[Edit, ...]:
        """The initial edits of a plan."""
        return (made(1.0, DM_CLUSTERS),) if self.is_of_dm else ()

    @property
    def section(self) -> Json:
        """The initial section of the component in the spec."""
        if self.is_of_dm:
            found: Json = spec_of_kind(DM_CLUSTERS)[self.part]
            return found
        return spec_of(CLUSTERS[self.cluster](), self.component)

    def section_in(self, spec: Json) -> Json:
        """The section of the component in the spec of a cluster that has it."""
        if self._is_listed:
            entries: list[Json] = spec[self.part]
            return next(entry for entry in entries if entry["name"] == self.component)
        found: Json = spec[self.part]
        for name in component_type(self.component).slot.tree({})[self.part]:
            found = found[name]
        return found

    def changed(self, spec: Json, change: Json) -> Json:
        """A spec after a change of the section."""
        if not self._is_listed:
            return merged(spec, self._tree(change))
        entries = [merged(each, change) if each["name"] == self.component else each for each in spec[self.part]]
        return spec | {self.part: entries}

    def merge(self, at: float, change: Json) -> Edit:
        """Merge a change into the section; in a list of sections, into the initial one."""
        if not self._is_listed:
            return self._edit(at, self._tree(change))
        return self.replace(at, self.section, merged(self.section, change))

    def replace(self, at: float, before: Json, after: Json) -> Edit:
        """Replace the section."""
        if not self._is_listed:
            return self._edit(at, self._tree(difference(before, after)))
        entries = CLUSTERS[self.cluster]()["spec"][self.part]
        return self._edit(at, {self.part: [after if entry["name"] == self.component else entry for entry in entries]})

    def _tree(self, section: Json) -> Json:
        found: Json = component_type(self.component).slot.tree(section)
        return found

    @property
    def part(self) -> str:
        """The field of the spec with the section."""
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
    """The components with a home: TidbClusters' components, then DM's."""
    return (*managed_components(), *workload_names(DM_CLUSTER))


def fields_of(component: str) -> Iterator[tuple[str, Json]]:
    """The leaf fields of a section, by dotted path, with their schemas in the CRD."""
    row = component_type(component)
    version = definition(next(kind for kind in KINDS if kind.name == row.of))["spec"]["versions"][0]
    ((part, tree),) = row.slot.tree({}).items()
    found = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][part]
    for name in tree if isinstance(tree, dict) else ():
        found = found["properties"][name]
    yield from _leaves("", found["items"] if isinstance(tree, list) else found)


def _leaves(path: str, node: Json) -> Iterator[tuple[str, Json]]:
    if "properties" not in node:
        yield path, node
        return
    for name, inner in node["properties"].items():
        yield from _leaves(f"{path}.{name}".removeprefix("."), inner)
