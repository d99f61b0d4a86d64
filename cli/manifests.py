"""Users' manifests: decoded strictly, with errors by field, then applied.

The commands validate strictly: an unknown field is an error that suggests the nearest known one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from apis.cluster import Cluster
from apis.crd import KINDS
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.model import Model
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from apis.unknown_fields import unknown_fields
from apis.validation import Running, immutability, validate
from cli.documents import BadDocument, decode_documents, read_bytes
from cli.failures import Failure
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.objects import Json
from kube.resources import NAMESPACES, Resource


class BadManifest(Failure):
    """Raised for an unusable manifest; the message names file, document, field, value and the way out."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a manifest file."""

    source: str
    body: Json

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace in the document, by default `default`."""
        return str(self.body["metadata"].get("namespace") or "default")


def read(path: Path) -> list[Manifest]:
    """All checked documents of a YAML file, or of standard input for `-`. Raises BadManifest."""
    source = "standard input" if str(path) == "-" else str(path)
    try:
        return parse(read_bytes(path), source)
    except BadDocument as error:
        raise BadManifest(f"{source}: {error}") from None


def parse(content: bytes, source: str) -> list[Manifest]:
    """All checked documents of a file's content; `source` names it. Raises BadManifest, BadDocument."""
    manifests = [
        _manifest(where, tree)
        for number, document in enumerate(decode_documents(content), start=1)
        if document is not None
        for where, tree in _items(f"{source}, document {number}", document)
    ]
    if not manifests:
        raise BadManifest(
            f"{source}: contains no object; write at least one document with apiVersion, kind and metadata"
        )
    return manifests


def _items(source: str, document: object) -> Iterator[tuple[str, object]]:
    """The objects of a document with their places: itself, or the items of a list.

    A list is `kind: List`, as kubectl prints it, or of one kind, e.g. `TidbClusterList`, as the API server returns it.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(kind, str) or not kind.endswith("List"):
        yield source, document
        return
    items, is_of_any = document.get("items"), (document.get("apiVersion"), kind) == ("v1", "List")
    if not isinstance(items, list):
        if is_of_any:
            raise _misfit(source, "items", items, "write the objects of the List")
        yield source, document
        return
    type_meta = {} if is_of_any else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(items, start=1):
        yield from _items(f"{source}, item {number}", type_meta | item if isinstance(item, dict) else item)


def _manifest(source: str, document: object) -> Manifest:
    if not isinstance(document, dict):
        raise BadManifest(
            f"{source}: is {_KINDS_OF_VALUES[type(document)]}, expected an object with apiVersion and kind"
        )
    for field, (form, example) in _TYPE.items():
        if not isinstance(document.get(field), str) or not form.fullmatch(document[field]):
            raise _misfit(source, field, document.get(field), f"write for example {field}: {example}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise BadManifest(f"{source}: metadata.name is missing; every object needs a name")
    for field, required in (("name", True), ("namespace", False)):
        value = metadata.get(field)
        absent = value in (None, "") and not required
        if not absent and not _is_segment(value):
            way_out = "write lower-case letters, digits and `-`, in quotes if they are digits alone"
            raise _misfit(source, f"metadata.{field}", value, way_out)
    manifest = Manifest(source, document)
    model = _MODELS.get(manifest.kind) if document["apiVersion"] == _OUR_API else None
    if model is not None:
        _check_fields(manifest, model)
    return manifest


def _misfit(source: str, field: str, value: object, way_out: str) -> BadManifest:
    if value in (None, ""):
        return BadManifest(f"{source}: {field} is missing; {way_out}")
    return BadManifest(f"{source}: {Problem(field, value, f'can not be used; {way_out}')}")


def _is_segment(value: object) -> bool:
    """True if a name can be part of a request's path; the API server validates it further."""
    return isinstance(value, str) and bool(re.fullmatch(r"(?!\.{1,2}$)[^/%?#\s]{1,253}", value))


_OUR_API, _CORE_API, _GROUP_OF_V2 = "pingcap.com/v1alpha1", "v1", "core.pingcap.com"

_TYPE = {
    "apiVersion": (re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[a-z0-9]{1,63}"), _OUR_API),
    "kind": (re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}"), "TidbCluster"),
}
"""What every object begins with: its form, and an example."""

_KINDS_OF_VALUES = {
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    list: "a list",
}


_MODELS: Mapping[str, type[Model]] = {kind.name: kind.model for kind in KINDS}


def _check_fields(manifest: Manifest, model: type[Model]) -> None:
    unknown = unknown_fields(manifest.body, model)
    if problems := [*map(str, unknown), *map(str, _problems(manifest.body, model))]:
        raise BadManifest("\n".join(f"{manifest.source}: {problem}" for problem in problems))


def _problems(tree: Json, model: type[Model]) -> list[Problem]:
    """All errors in the fields of an object: a value of a wrong type hides no other error."""
    misfits: dict[str, Problem] = {}
    while True:
        try:
            decoded = decode(tree, model)
        except InvalidField as error:
            new = {problem.field: problem for problem in error.problems if problem.field not in misfits}
            misfits |= new
            tree = _without(tree, new)
            if not new:
                return list(misfits.values())
        else:
            problems = _mistakes(decoded) if isinstance(decoded, Cluster) else ()
            return [*misfits.values(), *(problem for problem in problems if not _is_below(problem.field, misfits))]


def _mistakes(decoded: Cluster) -> Sequence[Problem]:
    """The mistakes in the spec of a cluster whose fields have the right types."""
    cluster = with_defaults(decoded)
    if mistakes := validate(cluster):
        return mistakes
    return immutability(cluster, Running()) if isinstance(cluster, TidbCluster) else ()


def _is_below(path: str, others: Iterable[str]) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in others)


_REQUIRED: Mapping[str, object] = {"replicas": 1}
"""Fields without which no component can be decoded, with valid values."""


def _without(tree: Json, paths: Iterable[str]) -> Json:
    """A copy without the values at some paths, e.g. `spec.pdms[0].replicas`, or with valid ones there."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(tree))
    for path in paths:
        *way, last = (int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", path))
        holder: Any = changed
        for step in way:
            holder = _inner(holder, step)
        if isinstance(holder, dict) and last in _REQUIRED:
            holder[last] = _REQUIRED[str(last)]
        elif isinstance(holder, dict):
            holder.pop(last, None)
        elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
            holder[last] = {}
    return changed


def _inner(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict):
        return holder.get(str(step))
    return holder[step] if isinstance(holder, list) and isinstance(step, int) and step < len(holder) else None


def apply(client: Client, manifests: list[Manifest]) -> None:
    """Create each object, or merge it into the existing one; create missing namespaces.

    Raises BadManifest for a kind that the API server does not serve, and for its rejections.
    """
    for manifest in manifests:
        try:
            _apply(client, manifest)
        except ApiError as error:
            raise BadManifest(f"{manifest.source}: refused by the API server: {error.message}") from None


def _apply(client: Client, manifest: Manifest) -> None:
    resource = _resource_of(client, manifest)
    namespace = manifest.namespace if resource.namespaced else ""
    if namespace:
        _ensure_namespace(client, namespace)
    try:
        client.create(resource, manifest.body, namespace)
    except AlreadyExists:
        client.patch(resource, manifest.name, namespace, manifest.body)


def _ensure_namespace(client: Client, name: str) -> None:
    if client.find(NAMESPACES, name) is None:
        client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _resource_of(client: Client, manifest: Manifest) -> Resource:
    group, _, version = manifest.body["apiVersion"].rpartition("/")
    root = Resource(group, version, "", manifest.kind).root
    try:
        served = msgspec.json.decode(client.request("GET", root).body)
    except NotFound:
        raise BadManifest(f"{manifest.source}: {_not_served(client, manifest)}") from None
    for entry in _top_level(served):
        if entry["kind"] == manifest.kind:
            return Resource(group, version, entry["name"], manifest.kind, bool(entry["namespaced"]))
    nearest = get_close_matches(manifest.kind, [entry["kind"] for entry in _top_level(served)], n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise BadManifest(
        f"{manifest.source}: kind {manifest.kind} is not part of {manifest.body['apiVersion']} here{hint}"
    )


def _not_served(client: Client, manifest: Manifest) -> str:
    asked: str = manifest.body["apiVersion"]
    if asked.partition("/")[0] == _GROUP_OF_V2:
        what = f"apiVersion {asked} belongs to TiDB Operator v2, which this operator does not manage"
        return f"{what}; write a TidbCluster of {_OUR_API}, for example from manifests/samples/basic.yaml"
    groups = msgspec.json.decode(client.request("GET", "/apis").body)["groups"]
    known = [version["groupVersion"] for group in groups for version in group["versions"]]
    nearest = get_close_matches(asked, [*known, _CORE_API], n=1)
    return f"apiVersion {asked} is not served here" + (f"; did you mean {nearest[0]}?" if nearest else "")


def _top_level(served: Json) -> Iterator[Json]:
    return (entry for entry in served["resources"] if "/" not in entry["name"])
