"""Create, update and patch: the way of every object into storage."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Resource
from sandbox.apiserver import applying, definitions, names, quotas
from sandbox.apiserver.admission import FieldCheck, admit, mutate
from sandbox.apiserver.applying import Apply
from sandbox.apiserver.defaults import initial_status
from sandbox.apiserver.deletion import Deletion
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.refusals import (
    Refusal,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    modified,
    not_found,
)
from sandbox.apiserver.routes import Target
from sandbox.apiserver.storage import Stored
from sandbox.apiserver.world import World

_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_STATUS_ON_CREATE = frozenset({"nodes"})
_CONDITIONAL_ONLY = frozenset({"leases.coordination.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"})

Change = Callable[[Json], Json]
"""Returns the new object for the current one."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write: dry run, unknown fields, manager.

    `applies`: the change includes the managers' records, in `metadata.managedFields`.
    """

    dry_run: bool = False
    fields: FieldCheck = field(default_factory=lambda: FieldCheck("Ignore"))
    manager: str = "unknown"
    applies: bool = False


class Writes:
    """The verbs that write objects. Each holds the storage's lock from its read to its write."""

    def __init__(self, world: World, deletion: Deletion) -> None:
        self._world = world
        self._deletion = deletion

    def create(self, target: Target, tree: Json, options: WriteOptions) -> Stored:
        """Store a new object. Raises Refusal: 404 for its namespace, 409 if it exists, 422 if it is invalid."""
        kind, world = target.kind, self._world
        _agree_on_type(kind, tree)
        options.fields.sent(kind, tree)
        meta = tree["metadata"]
        _agree_on_namespace(target.namespace, meta)
        if meta.get("resourceVersion"):
            raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
        with world.storage.lock:
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = names.generated(meta["generateName"], world.randomness)
            self._require_namespace(kind, target.namespace, meta.get("name", ""))
            records = meta.get("managedFields")
            self._begin(kind, tree)
            if options.applies:
                meta["managedFields"] = records
            mutate(world, kind, tree, None)
            admit(world, kind, tree, None)
            quotas.check(world, kind, tree, None)
            if world.storage.get(kind.key, _key(meta)):
                raise already_exists(kind.resource, meta["name"])
            if options.dry_run:
                return world.storage.preview(tree, kind.fields, new=True)
            stored = world.write(kind, tree)
            self._after(kind, target.namespace)
            return stored

    def update(self, target: Target, tree: Json, options: WriteOptions) -> Stored:
        """Replace an object or its status. Raises Refusal: 404, 409 for an outdated resourceVersion, 422."""
        _agree_on_type(target.kind, tree)
        options.fields.sent(target.kind, tree)
        meta = tree["metadata"]
        _agree_on_namespace(target.namespace, meta)
        if meta.get("name") != target.name:
            given = meta.get("name", "")
            raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({target.name})")
        if not meta.get("resourceVersion") and _needs_version(target.kind):
            error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            resource = target.kind.resource
            raise invalid(replace(resource, kind=resource.plural), target.name, [error])
        return self.change(target, lambda _: tree, options)

    def change(self, target: Target, change: Change, options: WriteOptions) -> Stored:
        """Store the result of `change` on the current object, or on its status. Raises Refusal."""
        kind, storage = target.kind, self._world.storage
        with storage.lock:
            stored = storage.get(kind.key, target.key)
            if stored is None:
                raise not_found(kind.resource, target.name)
            old = stored.tree() | {"apiVersion": kind.resource.api_version}
            wanted = change(stored.tree() | {"apiVersion": kind.resource.api_version})
            _check_identity(kind, wanted, old)
            records = wanted["metadata"].get("managedFields") if options.applies else None
            tree = self._merged(target, wanted, old)
            if not target.subresource:
                mutate(self._world, kind, tree, old)
            self._note_managers(target, tree, old, options, records)
            if target.subresource != "status" or kind.custom:
                admit(self._world, kind, tree, old)
            if not target.subresource:
                quotas.check(self._world, kind, tree, old)
            self._count_generation(kind, target.subresource, tree, old)
            if _same(tree, old):
                return stored
            if options.dry_run:
                return storage.preview(tree, kind.fields)
            return self._store(kind, tree)

    def apply(self, target: Target, applied: Json, how: Apply, options: WriteOptions) -> tuple[Stored, bool]:
        """Store a manager's apply; return the object, and True if it is new. Raises Refusal: 409 for foreign fields."""
        kind, storage = target.kind, self._world.storage
        _agree_on_type(kind, applied)
        given = applied["metadata"].setdefault("name", target.name)
        if given != target.name:
            raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({target.name})")
        options = replace(options, applies=True)
        with storage.lock:
            if storage.get(kind.key, target.key) is not None:
                return self.patch(target, lambda tree: applying.applied_to(kind, tree, applied, how), options), False
            if target.subresource:
                raise not_found(kind.resource, target.name)
            applied["metadata"] |= applying.created(kind, applied, how)
            return self.create(replace(target, name=""), applied, options), True

    def patch(self, target: Target, patch: Change, options: WriteOptions) -> Stored:
        """Store the result of a patch. Raises Refusal."""

        def change(old: Json) -> Json:
            uid, version = old["metadata"]["uid"], old["metadata"]["resourceVersion"]
            tree = patch(old)
            meta = tree.get("metadata") or {}
            given = meta.get("uid")
            # an outdated version takes precedence, and is a conflict
            if given not in (None, uid) and meta.get("resourceVersion", version) == version:
                error = invalid_value("metadata.uid", given, "field is immutable")
                raise invalid(target.kind.resource, target.name, [error])
            options.fields.patched(target.kind, tree)
            if meta.get("namespace") not in (None, old["metadata"].get("namespace")):
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            return tree

        return self.change(target, change, options)

    def overwrite(self, target: Target, change: Change) -> Stored:
        """Store the result of `change`, spec and status alike, without admission. Raises Refusal."""
        kind, storage = target.kind, self._world.storage
        with storage.lock:
            stored = storage.get(kind.key, target.key)
            if stored is None:
                raise not_found(kind.resource, target.name)
            return self._store(kind, change(stored.tree()))

    def _store(self, kind: Kind, tree: Json) -> Stored:
        """Write the tree; an object that waited only for its finalizers is deleted with the last of them."""
        written = self._world.write(kind, tree)
        if self._deletion.is_due(kind, tree):
            self._deletion.remove(kind, written)
        self._after(kind, written.namespace)
        return written

    def _after(self, kind: Kind, namespace: str) -> None:
        quotas.count(self._world, namespace)
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            definitions.refresh(self._world)

    def _begin(self, kind: Kind, tree: Json) -> None:
        """Set the fields that only the server sets, and drop those that a client may not set."""
        meta = tree["metadata"]
        for name in (*_SERVER_OWNED, "selfLink", "managedFields"):
            meta.pop(name, None)
        meta |= {"uid": self._world.randomness.uuid(), "creationTimestamp": self._world.timestamp()}
        if kind.has_generation:
            meta["generation"] = 1
        if kind.has_status and kind.key not in _STATUS_ON_CREATE:
            tree.pop("status", None)
        status = initial_status(kind.key, tree, meta["creationTimestamp"])
        if status is not None:
            tree.setdefault("status", status)
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            tree["status"] = {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": _storage_versions(tree),
            }

    def _merged(self, target: Target, wanted: Json, old: Json) -> Json:
        """The new object, with fields that this endpoint does not change taken from the old one."""
        kind = target.kind
        if target.subresource == "status":
            return _with_status(kind, wanted, old)
        meta = wanted["metadata"]
        for name in _SERVER_OWNED:
            meta.pop(name, None)
            if name in old["metadata"]:
                meta[name] = old["metadata"][name]
        for name in ("name", "namespace"):
            if name in old["metadata"]:
                meta[name] = old["metadata"][name]
        meta.pop("managedFields", None)
        if kind.has_status:
            wanted.pop("status", None)
            if "status" in old:
                wanted["status"] = old["status"]
        return wanted

    def _note_managers(
        self, target: Target, tree: Json, old: Json, options: WriteOptions, records: list[Json] | None
    ) -> None:
        """Update the managers' records: from an apply, or from the changed fields."""
        before = old["metadata"].get("managedFields")
        if not before and records is None:
            return
        tree["metadata"] = tree["metadata"] | {"managedFields": records or before}
        if records is None:
            how = Apply(options.manager, self._world.timestamp(), subresource=target.subresource)
            applying.updated(target.kind, old, tree, how)
        if before and _without_times(tree["metadata"]["managedFields"]) == _without_times(before):
            tree["metadata"]["managedFields"] = before

    def _count_generation(self, kind: Kind, subresource: str, tree: Json, old: Json) -> None:
        if not kind.has_generation or subresource == "status":
            return
        ignored = ("metadata", "status") if kind.has_status or not kind.custom else ("metadata",)
        if not _same(_without(tree, ignored), _without(old, ignored)):
            tree["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _require_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.resource.namespaced:
            return
        stored = self._world.storage.get(NAMESPACES.plural, namespace)
        if stored is None:
            raise not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in stored.tree()["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(kind.resource, name, why, [cause])


def _agree_on_type(kind: Kind, tree: Json) -> None:
    resource = kind.resource
    if tree.get("metadata") is None:
        tree["metadata"] = {}
    for name in ("kind", "apiVersion"):
        if kind.custom and not tree.get(name):
            shown_name = name[0].upper() + name[1:]
            text = msgspec.json.encode(tree).decode()
            why = f"Object '{shown_name}' is missing in '{text}'"
            raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {why}")
    api_version = tree.setdefault("apiVersion", resource.api_version)
    given = tree.setdefault("kind", resource.kind)
    if given != resource.kind:
        version = api_version.rpartition("/")[2]
        raise bad_request(
            f'{given} in version "{version}" cannot be handled as a {resource.kind}: '
            f"converting ({version}.{given}) to ({_package(resource)}.{resource.kind}): unknown conversion"
        )
    if api_version != resource.api_version:
        raise bad_request(
            f'{given} in version "{api_version}" cannot be handled as a {resource.kind}: '
            f'no kind "{given}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )


def _without_times(records: list[Json]) -> list[Json]:
    timeless = [_without(record, ("time",)) for record in records]
    return sorted(timeless, key=lambda each: (each["manager"], each["operation"]))


def _storage_versions(crd: Json) -> list[str]:
    return [version["name"] for version in crd["spec"].get("versions") or () if version.get("storage")]


def _package(resource: Resource) -> str:
    return resource.group.partition(".")[0] or "core"


def _agree_on_namespace(namespace: str, meta: Json) -> None:
    if namespace and not meta.get("namespace"):
        meta["namespace"] = namespace
    if meta.get("namespace", "") != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_identity(kind: Kind, wanted: Json, old: Json) -> None:
    """Raises Refusal (409) if the new object names another version or UID."""
    meta, current = wanted.setdefault("metadata", {}), old["metadata"]
    name = current["name"]
    if meta.get("uid", current["uid"]) != current["uid"]:
        found = f"UID in precondition: {meta['uid']}, UID in object meta: {current['uid']}"
        raise conflict(kind.resource, name, f"Precondition failed: {found}")
    if meta.get("resourceVersion") and meta["resourceVersion"] != current["resourceVersion"]:
        raise modified(kind.resource, name)
    if meta.get("name") != name:
        given = meta.get("name", "")
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def _with_status(kind: Kind, wanted: Json, old: Json) -> Json:
    tree = dict(old)
    tree.pop("status", None)
    if wanted.get("status") is not None:
        tree["status"] = wanted["status"]
    if kind.custom:
        return tree
    meta = dict(old["metadata"])
    for name in ("labels", "annotations"):
        meta.pop(name, None)
        if wanted["metadata"].get(name):
            meta[name] = wanted["metadata"][name]
    return tree | {"metadata": meta}


def _needs_version(kind: Kind) -> bool:
    return kind.custom is not None or kind.key in _CONDITIONAL_ONLY


def _same(one: Json, other: Json) -> bool:
    return _without_version(one) == _without_version(other)


def _without_version(tree: Json) -> Json:
    if "metadata" not in tree:
        return tree
    return tree | {"metadata": _without(tree["metadata"], ("resourceVersion",))}


def _without(tree: Json, names: tuple[str, ...]) -> Json:
    return {name: value for name, value in tree.items() if name not in names}


def _key(meta: Json) -> str:
    namespace = meta.get("namespace", "")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])
