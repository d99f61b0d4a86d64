"""The served resources: built-in ones, and custom ones."""

from collections.abc import Collection, Iterable, Mapping

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver.kinds import BUILT_IN, Column, Custom, Kind, ScalePaths
from sandbox.apiserver.storage import Stored


class Registry:
    """Kinds by (group, version, plural). Changed only under the storage's lock; readers see a whole mapping."""

    def __init__(self) -> None:
        self._read: dict[str, Stored] = {}
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self._kinds: Mapping[tuple[str, str, str], Kind] = dict(_BUILT_IN)

    @property
    def kinds(self) -> Mapping[tuple[str, str, str], Kind]:
        """All served kinds by (group, version, plural)."""
        return self._kinds

    def of(self, resource: Resource) -> Kind:
        """The kind of a resource that is served."""
        return self._kinds[(resource.group, resource.version, resource.plural)]

    def of_definition(self, crd: str) -> tuple[Kind, ...]:
        """The kinds of the CRD with this name."""
        return self._custom.get(crd, ())

    def namespaced(self) -> list[Kind]:
        """One kind for each namespaced resource."""
        return list({kind.key: kind for kind in self._kinds.values() if kind.resource.namespaced}.values())

    def has_read(self, definition: Stored) -> bool:
        """True if exactly this CRD is served; decoding one takes a while."""
        return self._read.get(definition.name) is definition

    def install(self, definitions: Collection[Stored]) -> None:
        """Serve exactly the resources of these CRDs."""
        self._custom = {
            stored.name: self._custom[stored.name] if self.has_read(stored) else tuple(_custom_kinds(stored.tree()))
            for stored in definitions
        }
        self._read = {stored.name: stored for stored in definitions}
        custom = {_route(kind): kind for kinds in self._custom.values() for kind in kinds}
        self._kinds = custom | _BUILT_IN


def _route(kind: Kind) -> tuple[str, str, str]:
    return kind.resource.group, kind.resource.version, kind.resource.plural


_BUILT_IN = {_route(kind): kind for kind in BUILT_IN}


def _custom_kinds(crd: Json) -> Iterable[Kind]:
    spec, name = crd["spec"], crd["metadata"]["name"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        yield Kind(
            Resource(
                spec["group"], version["name"], names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced"
            ),
            names.get("singular") or names["kind"].lower(),
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            has_status=subresources.get("status") is not None,
            has_generation=True,
            scale=_scale_paths(subresources.get("scale")),
            fields=tuple(_path(field["jsonPath"]) for field in version.get("selectableFields") or ()),
            custom=Custom(name, _schema(version), tuple(map(_column, version.get("additionalPrinterColumns") or ()))),
        )


def _schema(version: Json) -> Json:
    schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _scale_paths(scale: Json | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        _keys(scale["specReplicasPath"]),
        _keys(scale["statusReplicasPath"]),
        _keys(scale.get("labelSelectorPath") or ""),
    )


def _path(json_path: str) -> str:
    return json_path.lstrip(".")


def _keys(json_path: str) -> tuple[str, ...]:
    return tuple(filter(None, json_path.split(".")))


def _column(column: Json) -> Column:
    return Column(
        column["name"],
        column["type"],
        column["jsonPath"],
        column.get("description", ""),
        column.get("format", ""),
        column.get("priority", 0),
    )
