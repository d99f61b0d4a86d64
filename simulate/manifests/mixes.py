"""Every mix of components, with and without TLS and its own PD, with optional objects absent, null or empty.

Each is brought up and reconciled a few times: it becomes Ready or reports a reason, raises nothing unexpected, and
creates nothing for an absent component.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import msgspec

from apis.components import ComponentType, component_types
from apis.crd import TIDB_CLUSTER, definition
from cli import manifests
from kube.objects import Json
from kube.resources import CONFIG_MAPS, SERVICES, STATEFUL_SETS
from member.labels import COMPONENT
from simulate.engine.worlds import CLUSTERS
from simulate.manifests.newcomers import Defect, NewcomerRun, Verdict, in_parallel, verdict_of

_ABSENT = "absent"
_WRITTEN: Mapping[str, Json | None] = {"null": None, "empty": {}}
_DISCOVERY = "discovery"
_SECONDS = 6.0
"""Seconds in which a host becomes Ready, and its guest is reconciled a few times."""
_NOT_OPTIONAL = frozenset({"cluster", "requests", "tlsCluster"})
"""Objects that depend on the mix."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A cluster: its components, its PD or another's, and the form of optional objects."""

    components: frozenset[str]
    tls: bool
    joins: bool
    optional: str

    @property
    def name(self) -> str:
        """The name for reports."""
        parts = [*sorted(self.components), *["TLS"] * self.tls, *["joins"] * self.joins]
        return f"{'+'.join(parts) or 'nothing'}, optional objects {self.optional}"

    def manifests(self) -> Iterator[Json]:
        """The cluster, after the one that it joins."""
        if self.joins:
            yield CLUSTERS["tiny"]() | {"metadata": {"name": "host"}}
        spec = self._optional(_schema())
        spec |= {"tlsCluster": {"enabled": True}} if self.tls else {}
        spec |= {"cluster": {"name": "host"}} if self.joins else {}
        for name in sorted(self.components):
            row = _rows()[name]
            spec = _merged(spec, row.slot.tree(self._optional(_schema_of(row)) | _content(row)))
        yield _cluster("guest", spec)

    def _optional(self, properties: Json) -> Json:
        return {} if self.optional == _ABSENT else dict.fromkeys(_objects(properties), _WRITTEN[self.optional])


_LENIENT: Json = msgspec.json.decode(msgspec.json.encode(definition(TIDB_CLUSTER)))
"""The CRD of an earlier release, with which the API server accepts anything, even null."""
_LENIENT["spec"]["versions"][0]["schema"] = {
    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
}


def mixes() -> list[Mix]:
    """All mixes, in an order in which each n-th is a fair sample."""
    names = sorted(_rows())
    subsets = (frozenset(name for name, is_in in zip(names, bits, strict=True) if is_in) for bits in _bits(len(names)))
    return [Mix(*each) for each in product(subsets, (False, True), (False, True), (_ABSENT, *_WRITTEN))]


def judge_mixes(chosen: Iterable[Mix], jobs: int) -> Iterator[tuple[Mix, Verdict]]:
    """The verdicts of mixes, in their order."""
    found = list(chosen)
    yield from zip(found, in_parallel(judge_mix, found, jobs), strict=True)


def judge_mix(mix: Mix) -> Verdict:
    """The verdict of a mix."""
    return verdict_of(0, lambda: _try(mix))


def _try(mix: Mix) -> tuple[str, str]:
    content = b"\n---\n".join(msgspec.json.encode(manifest) for manifest in mix.manifests())
    try:
        documents = manifests.parse(content, "m.yaml")
        run = NewcomerRun(1, [_LENIENT])
        outcome = run.follow(documents, _SECONDS)
    except manifests.BadManifest as error:
        return "refused", str(error)
    allowed = {*mix.components, _DISCOVERY}
    for resource in (STATEFUL_SETS, SERVICES, CONFIG_MAPS):
        for item in run.objects(resource):
            made_for = item.metadata.labels.get(COMPONENT, "")
            if item.metadata.name.startswith("guest-") and made_for not in allowed:
                raise Defect(f"{resource.kind} {item.metadata.name} was made, which is of no component of the cluster")
    return outcome


def _bits(count: int) -> Iterator[tuple[bool, ...]]:
    yield from product((False, True), repeat=count)


@cache
def _rows() -> dict[str, ComponentType]:
    """The optional components of a spec; without full-text search, which needs four others."""
    rows = (row for row in component_types() if row.name != _DISCOVERY)
    return {row.name: row for row in rows if "tici" not in row.slot.tree({})}


def _cluster(name: str, spec: Json) -> Json:
    small = CLUSTERS["tiny"]()
    common = {key: value for key, value in small["spec"].items() if key not in _rows()}
    return small | {"metadata": {"name": name}, "spec": common | spec}


def _content(row: ComponentType) -> Json:
    storage: Json = {"requests": {"storage": "1Gi"}}
    content: Json = {"replicas": 1, "baseImage": row.default_image}
    if row.storage_claims:
        content["storageClaims"] = [{"resources": storage}]
    elif row.data_volume:
        content |= storage
    return content


def _schema() -> Json:
    tree: Json = definition(TIDB_CLUSTER)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties: Json = tree["properties"]["spec"]["properties"]
    return properties


def _schema_of(row: ComponentType) -> Json:
    (field, content), *_ = row.slot.tree({}).items()
    schema = _schema()[field]
    properties: Json = (schema["items"] if isinstance(content, list) else schema)["properties"]
    return properties


def _objects(properties: Json) -> list[str]:
    """The optional objects among properties that are not components."""
    components = {field for row in _rows().values() for field in row.slot.tree({})}
    found = (name for name, each in properties.items() if each.get("type") == "object" and "required" not in each)
    return [name for name in found if name not in _NOT_OPTIONAL | components]


def _merged(spec: Json, more: Json) -> Json:
    """Two specs merged; lists are concatenated."""
    return spec | {
        key: [*(spec.get(key) or ()), *value] if isinstance(value, list) else value for key, value in more.items()
    }
