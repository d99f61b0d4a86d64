"""A Kubernetes object: typed metadata, and the server's bytes, decoded on demand (design.md 3.7).

Because bytes are kept, a cache of 10,000 pods takes only the memory of what the network sent, and sharing is safe:
every `decode` returns its own tree, and models are frozen. No reader can change what another reader sees, and no field
is lost (informers-workqueue.md PY-1, PY-7).
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from ports.structs import decoder

Json: TypeAlias = dict[str, Any]
"""A JSON object as plain containers, with camelCase keys and all unknown fields."""

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

_NOTHING = msgspec.Raw()
_NO_ENTRIES: Mapping[str, str] = MappingProxyType({})
_NULL = msgspec.Raw(b"null")
_ENVELOPE = ("apiVersion", "kind")
_MODELS = 512
"""The number of models kept: those that a few reconciles read at a time, far fewer than caches hold."""
_MANAGED_FIELDS = b',"managedFields":'


def _remembered(function: _F) -> _F:
    """The function, with its last results remembered by its arguments."""
    return cast("_F", lru_cache(maxsize=_MODELS)(function))


MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
"""The label with the name of the program that manages an object."""


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The metadata that every decision reads.

    Labels and annotations of an `Object` are read-only views, empty if it has none; writing to them raises TypeError.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    labels: Mapping[str, str] = _NO_ENTRIES
    annotations: Mapping[str, str] = _NO_ENTRIES
    managed_fields_: msgspec.Raw = msgspec.field(name="managedFields", default=_NOTHING)
    """Always empty: declared only so that one pass over the bytes locates the field to cut out."""
    controller: OwnerReference | None = None
    """The owner that controls the object, if any. `Object` finds it in `owner_references`."""


class _Envelope(msgspec.Struct, rename="camel", gc=False):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


_envelopes = msgspec.json.Decoder(_Envelope)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Object:
    """An object as the API server sent it. Immutable, and shared by all readers of a cache."""

    __slots__ = ("__weakref__", "api_version", "kind", "metadata", "raw")

    def __init__(self, raw: bytes, api_version: str = "", kind: str = "") -> None:
        """Decode the metadata of `raw`; `api_version` and `kind` replace missing ones in items of lists (REF-17).

        Drops managedFields (INF-30) and nulls in the metadata, which Go reads as absent. Raises msgspec.DecodeError if
        `raw` has no metadata (KEY-5) or unreadable metadata.
        """
        try:
            envelope = _envelopes.decode(raw)
        except msgspec.ValidationError as error:
            raw = _without_nulls(raw, error)
            envelope = _envelopes.decode(raw)
        except (UnicodeDecodeError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from error
        self.metadata = _completed(envelope.metadata)
        self.api_version = envelope.api_version or api_version
        self.kind = envelope.kind or kind
        self.raw = _without_managed_fields(raw, envelope.metadata)

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for a cluster-scoped object (KEY-1)."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    def decode(self) -> Json:
        """The whole object as a fresh tree that the caller may change."""
        tree: Json = msgspec.json.decode(self.raw)
        tree.setdefault("apiVersion", self.api_version)
        tree.setdefault("kind", self.kind)
        return tree

    @_remembered
    def decode_as(self, model: type[_T]) -> _T:
        """The object as a frozen model, shared by readers. Raises msgspec.ValidationError, which names the field.

        Results are kept, because one step of a reconcile after another reads the same pods.
        """
        return decoder(model).decode(self.raw)

    def __repr__(self) -> str:
        """Kind, key and version, for log lines."""
        return f"<{self.kind or 'Object'} {self.key} @{self.metadata.resource_version}>"


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, bytes] | None = None


def secret_data(secret: Object | None, *, keeps_empty: bool = False) -> dict[str, bytes]:
    """The decoded data of a Secret by key; empty for None.

    Empty values are omitted unless `keeps_empty` is set: a password may be empty.
    """
    # decode_as caches models, and the content of a Secret must not be cached
    data = decoder(_Secret).decode(secret.raw).data if secret is not None else None
    return {key: value for key, value in (data or {}).items() if value or keeps_empty}


def digest(tree: object) -> bytes:
    """A digest of a JSON tree that does not depend on the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(tree, order="sorted")).digest()


def is_observed(tree: Json) -> bool:
    """True if the object's controller has seen its newest spec, so that the status is about it."""
    seen = (tree.get("status") or {}).get("observedGeneration") or 0
    return bool(seen >= (tree["metadata"].get("generation") or 0))


def condition_of(conditions: Iterable[Json], kind: str) -> Json:
    """The condition of a type in a status (meta/v1 Condition); empty if there is none."""
    # other clients may have removed fields
    for condition in conditions:
        if condition.get("type") == kind:
            return condition
    return {}


class StoredCondition(msgspec.Struct, frozen=True):
    """A condition in a status; other clients may have removed fields."""

    type: str = ""
    reason: str | None = None


class _Conditions(msgspec.Struct, frozen=True):
    conditions: tuple[StoredCondition, ...] | None = None


class _Reporting(msgspec.Struct, frozen=True):
    status: _Conditions | None = None


def stored_condition(seen: Object, kind: str) -> StoredCondition | None:
    """The condition of a type in an object's status, or None."""
    status = seen.decode_as(_Reporting).status
    for condition in (status and status.conditions) or ():
        if condition.type == kind:
            return condition
    return None


def _completed(meta: ObjectMeta) -> ObjectMeta:
    """Note the controller in `meta`, and put read-only views in the place of labels and annotations."""
    if meta.labels is not _NO_ENTRIES:
        force_setattr(meta, "labels", MappingProxyType(meta.labels))
    if meta.annotations is not _NO_ENTRIES:
        force_setattr(meta, "annotations", MappingProxyType(meta.annotations))
    controller = None
    for owner in meta.owner_references:
        if owner.controller:
            controller = owner
            break
    force_setattr(meta, "controller", controller)
    return meta


def _without_managed_fields(raw: bytes, meta: ObjectMeta) -> bytes:
    """Remove managedFields from `meta` and cut them out of `raw`, of which they may be half."""
    managed = bytes(meta.managed_fields_)
    if not managed:
        return raw
    force_setattr(meta, "managed_fields_", _NOTHING)
    # unescaped quotes cannot be inside a string, so this is a key; its value shows if it is the right one
    start = raw.find(_MANAGED_FIELDS)
    end = start + len(_MANAGED_FIELDS)
    if start >= 0 and raw.startswith(managed, end):
        return raw[:start] + raw[end + len(managed) :]
    return _decoded_without_managed_fields(raw)


def _without_nulls(raw: bytes, why: msgspec.ValidationError) -> bytes:
    """`raw` without the nulls and managedFields of its metadata. Raises `why` if that does not help."""
    try:
        body = _fields.decode(raw)
        meta = msgspec.json.decode(body["metadata"])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        raise why from None
    if not isinstance(meta, dict):
        raise why
    meta.pop("managedFields", None)
    named = {name: value for name, value in body.items() if value != _NULL or name not in _ENVELOPE}
    return msgspec.json.encode(named | {"metadata": msgspec.Raw(msgspec.json.encode(_pruned(meta)))})


def _pruned(tree: Any) -> Any:
    """A JSON tree without null fields."""
    if isinstance(tree, dict):
        return {key: _pruned(value) for key, value in tree.items() if value is not None}
    return [_pruned(value) for value in tree if value is not None] if isinstance(tree, list) else tree


def _decoded_without_managed_fields(raw: bytes) -> bytes:
    """The slow path, for JSON that no API server writes: with blanks, or with managedFields first."""
    body = _fields.decode(raw)
    meta = _fields.decode(body["metadata"])
    del meta["managedFields"]
    body["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.json.encode(body)


def whose(obj: Object) -> str:
    """Who owns a foreign object, as a phrase behind its name."""
    owner = obj.metadata.controller
    if owner:
        return f"controlled by {owner.kind} {owner.name}"
    manager = obj.metadata.labels.get(MANAGED_BY_LABEL, "")
    return f"managed by {manager}" if manager else "without a controller"
