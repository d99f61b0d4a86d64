"""A missing part of a spec is reported or does not matter; it is never an internal error."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, TIDB_MONITORS, Resource
from simulate.manifests.rich_specs import rich_spec
from tests.security.spec_objects import objects_of, raised_for

_CLUSTERS = (TIDB_CLUSTERS, DM_CLUSTERS)


@pytest.mark.parametrize(
    ("component", "way"),
    [
        ("ticdc", ("podSecurityContext", "sysctls", 0, "name")),
        ("ticdc", ("podSecurityContext", "sysctls", 0, "value")),
        ("tiflash", ("additionalVolumes", 0, "name")),
    ],
)
def test_a_component_lacks_a_field(component: str, way: tuple[str | int, ...]) -> None:
    objects_of(TIDB_CLUSTERS, _without(TIDB_CLUSTERS, (component, *way)))


@pytest.mark.parametrize("field", ["name", "key"])
@pytest.mark.parametrize("source", ["secret", "configMap"])
def test_a_certificate_of_remote_write_lacks_a_field(source: str, field: str) -> None:
    spec = rich_spec(TIDB_MONITORS)
    authority = spec["prometheus"]["remoteWrite"][0]["tlsConfig"]["ca"]
    authority = {source: {key: value for key, value in authority[source].items() if key != field}}
    spec["prometheus"]["remoteWrite"][0]["tlsConfig"]["ca"] = authority
    assert [] == raised_for(TIDB_MONITORS, spec)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "component"), [(DM_CLUSTERS, "worker"), (TIDB_CLUSTERS, "tiproxy")])
def test_a_variable_of_a_new_cluster_lacks_its_name(kind: Resource, component: str) -> None:
    """No valid spec is known, so the operator observes the cluster by this one."""
    spec = rich_spec(kind)
    spec[component]["env"] = [{"value": "x"}]
    assert [] == raised_for(kind, spec)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("kind", _CLUSTERS, ids=lambda kind: str(kind.kind))
def test_any_field_of_a_cluster_may_be_absent(kind: Resource) -> None:
    for way in _fields(rich_spec(kind)):
        objects_of(kind, _without(kind, way))


def _fields(tree: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        if isinstance(key, str):
            yield (*way, key)
        yield from _fields(value, (*way, key))


def _without(kind: Resource, way: tuple[str | int, ...]) -> Json:
    spec = rich_spec(kind)
    holder: Any = spec
    for step in way[:-1]:
        holder = holder[step]
    del holder[way[-1]]
    return spec
