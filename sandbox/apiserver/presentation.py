"""The form of objects in an answer: JSON, only metadata, or rows of a Table."""

import msgspec

from kube.objects import Json
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.reads import Page
from sandbox.apiserver.storage import Stored

_METADATA_VERSION = "meta.k8s.io/v1"


def versioned(kind: Kind, stored: Stored) -> bytes:
    """The object's JSON in the requested version; all versions of a resource share their storage."""
    prefix = type_prefix(kind)
    if stored.raw.startswith(prefix):
        return stored.raw
    return msgspec.json.encode(stored.tree() | {"apiVersion": kind.resource.api_version})


def type_prefix(kind: Kind) -> bytes:
    """The beginning of the JSON of each stored object of this kind."""
    return f'{{"kind":"{kind.resource.kind}","apiVersion":"{kind.resource.api_version}",'.encode()


def as_list(kind: Kind, page: Page) -> bytes:
    """A List; items of built-in kinds have no kind and apiVersion (REF-17)."""
    prefix = type_prefix(kind)
    items = [versioned(kind, stored) for stored in page.items]
    if not kind.custom:
        items = [b"{" + raw.removeprefix(prefix) for raw in items]
    head = f'{{"kind":"{kind.resource.kind}List","apiVersion":"{kind.resource.api_version}","metadata":'
    meta = ({"continue": ""} if kind.custom else {}) | list_meta(page)
    return head.encode() + msgspec.json.encode(meta) + b',"items":[' + b",".join(items) + b"]}\n"


def list_meta(page: Page) -> Json:
    """The metadata of a list."""
    meta: Json = {"resourceVersion": str(page.version)}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def as_metadata(stored: Stored) -> Json:
    """A PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _METADATA_VERSION,
        "metadata": stored.tree()["metadata"],
    }


def as_metadata_list(page: Page) -> bytes:
    """A PartialObjectMetadataList."""
    items = [{"metadata": stored.tree()["metadata"]} for stored in page.items]
    return msgspec.json.encode(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": _METADATA_VERSION,
            "metadata": list_meta(page),
            "items": items,
        }
    )
