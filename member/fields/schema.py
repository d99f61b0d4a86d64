"""The fields of a TidbCluster's spec, from its definition."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TypeVar

from apis.components import component_types
from apis.crd import KINDS, TIDB_CLUSTER, definition
from kube.objects import Json

ITEM = "[]"
"""The suffix of a list whose items have fields, as in `pdms[].replicas`."""

_Said = TypeVar("_Said")


@cache
def fields() -> Mapping[str, Json]:
    """Each field that has no fields below it, by its path in the spec, with its schema: `tikv.storageVolumes[].name`.

    Trees of Kubernetes, such as `affinity`, are one field; of `requests`, the size of a data volume is one more.
    """
    found = fields_of(TIDB_CLUSTER.name)
    sizes = (f"{row.name}.requests.storage" for row in component_types() if row.data_volume)
    return {**found, **{path: {"type": "string"} for path in sizes}}


@cache
def fields_of(kind: str) -> Mapping[str, Json]:
    """As `fields`, for a kind by its name, without the sizes of data volumes."""
    found = next(each for each in KINDS if each.name == kind)
    schema = definition(found)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return dict(leaves("", schema["properties"]["spec"]))


def leaves(path: str, node: Json) -> Iterator[tuple[str, Json]]:
    """The fields below a path, each with its schema, that have no fields below them."""
    items = node.get("items") or {}
    if "properties" in items:
        yield from leaves(path + ITEM, items)
    elif "properties" not in node:
        yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from leaves(f"{path}.{name}" if path else name, inner)


def fits(path: str, glob: str) -> bool:
    """True if a glob matches a field; `[]` in it is literal."""
    return fnmatchcase(path.replace(ITEM, ""), glob.replace(ITEM, ""))


def last_fit(path: str, table: Mapping[str, _Said]) -> _Said | None:
    """The value of the last glob in a table that matches a field; None if none does."""
    return next((said for glob, said in reversed(list(table.items())) if fits(path, glob)), None)
