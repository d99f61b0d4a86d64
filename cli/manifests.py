"""Manifests as a user writes them: decoded strictly, errors reported by field, then applied.

Our commands validate strictly: a field that the resource does not have is an error that names the nearest one it has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import msgspec
import yaml

from apis.decoding import decode, unknown_fields
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.client import Client
from kube.errors import AlreadyExists, NotFound
from kube.objects import Json
from kube.resources import NAMESPACES, Resource


class BadManifest(Exception):
    """Raised when a manifest can't be used; the message names file, document, field, value and the way out."""


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
        """The namespace the document asks for; `default` when it asks for none."""
        return str(self.body["metadata"].get("namespace") or "default")


def read(path: Path) -> list[Manifest]:
    """All documents of a YAML file, checked. Raises BadManifest."""
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadManifest(f"{path}: {error.strerror or error}; give the path of a YAML file") from None
    except yaml.YAMLError as error:
        raise BadManifest(f"{path}: not valid YAML: {_one_line(error)}") from None
    manifests = [
        _manifest(f"{path}, document {number}", document)
        for number, document in enumerate(documents, start=1)
        if document is not None
    ]
    if not manifests:
        raise BadManifest(f"{path}: contains no object; write at least one document with apiVersion, kind and metadata")
    return manifests


def _manifest(source: str, document: object) -> Manifest:
    if not isinstance(document, dict):
        raise BadManifest(f"{source}: is a {type(document).__name__}, expected an object with apiVersion and kind")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str):
            raise BadManifest(f"{source}: {field} is missing; write for example {field}: {_EXAMPLES[field]}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise BadManifest(f"{source}: metadata.name is missing; every object needs a name")
    # YAML knows dates and keys that are no text; JSON does not
    body: Json = msgspec.json.decode(msgspec.json.encode(document, order="deterministic"))
    manifest = Manifest(source, body)
    if body["apiVersion"] == "pingcap.com/v1alpha1" and body["kind"] == "TidbCluster":
        _check_tidb_cluster(manifest)
    return manifest


_EXAMPLES = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster"}


def _check_tidb_cluster(manifest: Manifest) -> None:
    problems = [
        f"{unknown.path}: unknown field" + (f"; did you mean {unknown.nearest}?" if unknown.nearest else "")
        for unknown in unknown_fields(manifest.body, TidbCluster)
    ]
    try:
        cluster = with_defaults(decode(manifest.body, TidbCluster))
    except InvalidField as error:
        problems.append(str(error))
    else:
        problems += [str(problem) for problem in validate(cluster)]
    if problems:
        raise BadManifest("\n".join(f"{manifest.source}: {problem}" for problem in problems))


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())


def apply(client: Client, manifests: list[Manifest]) -> None:
    """Create each object, or merge it into the one that exists; namespaces are made when missing.

    Raises BadManifest for a kind that the API server does not serve, ApiError for what it refuses.
    """
    for manifest in manifests:
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
        raise BadManifest(f"{manifest.source}: apiVersion {manifest.body['apiVersion']} is not served here") from None
    for entry in _top_level(served):
        if entry["kind"] == manifest.kind:
            return Resource(group, version, entry["name"], manifest.kind, bool(entry["namespaced"]))
    nearest = get_close_matches(manifest.kind, [entry["kind"] for entry in _top_level(served)], n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise BadManifest(
        f"{manifest.source}: kind {manifest.kind} is not part of {manifest.body['apiVersion']} here{hint}"
    )


def _top_level(served: Json) -> Iterator[Json]:
    return (entry for entry in served["resources"] if "/" not in entry["name"])
