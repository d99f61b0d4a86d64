"""Deletion: grace periods of pods, finalizers, and containers that must be emptied first.

Namespaces and CustomResourceDefinitions are containers: they stay, terminating, until their last object is gone. The
garbage collector handles dependents; this module sets the finalizers that it acts on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, JOBS, NAMESPACES, PODS, Resource
from sandbox.apiserver import definitions, quotas
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.refusals import conflict, forbidden, invalid, not_found, unsupported
from sandbox.apiserver.routes import number
from sandbox.apiserver.storage import Stored
from sandbox.apiserver.world import World

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

_FINALIZER_OF_POLICY = {"Foreground": FOREGROUND, "Orphan": ORPHAN, "Background": ""}
_CONTAINERS = (NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS)
_IMMORTAL = ("default", "kube-system", "kube-public")
"""Namespaces that no API server deletes."""
DELETE_OPTIONS = Resource("meta.k8s.io", "v1", "", "DeleteOptions")
_POLICIES = ("Foreground", "Background", "Orphan", "nil")
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a DELETE. `grace` is in seconds; None means the object's default."""

    uid: str = ""
    resource_version: str = ""
    policy: str = ""
    grace: int | None = None
    dry_run: bool = False


def parse_options(tree: Json, query: Mapping[str, str]) -> DeleteOptions:
    """The options from the body or, for missing ones, from the query. Raises Refusal (400, 422)."""
    preconditions = tree.get("preconditions") or {}
    policy = tree.get("propagationPolicy") or query.get("propagationPolicy", "")
    if tree.get("orphanDependents") is not None and not policy:
        policy = "Orphan" if tree["orphanDependents"] else "Background"
    if policy and policy not in _FINALIZER_OF_POLICY:
        raise invalid(DELETE_OPTIONS, "", [unsupported("propagationPolicy", policy, _POLICIES)])
    grace = tree.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = number(query, "gracePeriodSeconds", 0)
    return DeleteOptions(
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        policy,
        grace,
        bool(tree.get("dryRun")) or query.get("dryRun") == "All",
    )


class Deletion:
    """The verbs that remove objects."""

    def __init__(self, world: World) -> None:
        self._world = world

    def delete(self, kind: Kind, key: str, options: DeleteOptions) -> tuple[Stored, bool]:
        """Delete an object or begin to; return its last state and whether it is gone. Raises Refusal."""
        if kind.resource == NAMESPACES and key in _IMMORTAL:
            raise forbidden(NAMESPACES, key, "this namespace may not be deleted")
        storage = self._world.storage
        with storage.lock:
            stored = storage.get(kind.key, key)
            if stored is None:
                raise not_found(kind.resource, key.rpartition("/")[2])
            _check_preconditions(kind, stored, options)
            tree = stored.tree()
            changed = self._mark(kind, tree, options)
            due = self.is_due(kind, tree)
            if options.dry_run:
                return stored, due
            if due and kind.resource not in _CONTAINERS:
                return self.remove(kind, stored), True
            if changed:
                stored = self._world.write(kind, tree)
                self._empty(kind, stored)
            return stored, False

    def remove(self, kind: Kind, stored: Stored) -> Stored:
        """Remove the object from storage, and with it a container that waited for it."""
        last = self._world.storage.remove(kind.key, stored)
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            definitions.refresh(self._world)
        quotas.count(self._world, stored.namespace)
        self._finish_containers(kind, stored.namespace)
        return last

    def is_due(self, kind: Kind, tree: Json) -> bool:
        """True if a deleted object waits for nothing more."""
        meta = tree["metadata"]
        if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
            return False
        return not any(True for _ in self._contents(kind, meta["name"]))

    def _mark(self, kind: Kind, tree: Json, options: DeleteOptions) -> bool:
        """Set deletionTimestamp, grace period and finalizers; True if anything changed."""
        meta = tree["metadata"]
        policy = options.policy or ("Orphan" if kind.resource == JOBS else "")
        finalizers = _finalizers(meta.get("finalizers") or [], policy)
        grace = _grace(kind, tree, options)
        already = "deletionTimestamp" in meta
        if already and grace >= meta.get("deletionGracePeriodSeconds", 0) and finalizers == meta.get("finalizers", []):
            return False
        meta.pop("finalizers", None)
        if finalizers:
            meta["finalizers"] = finalizers
        if not already and "generation" in meta:
            meta["generation"] += 1
        if not already or grace < meta.get("deletionGracePeriodSeconds", 0):
            meta["deletionTimestamp"] = self._world.timestamp(grace)
            meta["deletionGracePeriodSeconds"] = grace
        if kind.resource in _CONTAINERS:
            # Kubernetes sets no grace period on these
            meta.pop("deletionGracePeriodSeconds")
        if kind.resource == NAMESPACES:
            tree["status"] = (tree.get("status") or {}) | {"phase": "Terminating"}
        return True

    def _empty(self, kind: Kind, container: Stored) -> None:
        if kind.resource not in _CONTAINERS:
            return
        for inner, stored in list(self._contents(kind, container.name)):
            # deleting one object may also delete others
            if self._world.storage.get(inner.key, stored.key):
                self.delete(inner, stored.key, DeleteOptions(policy="Background"))
        self._finish(kind, container.key)

    def _contents(self, kind: Kind, name: str) -> Iterator[tuple[Kind, Stored]]:
        """The content of a container with this name; empty if the kind is not a container."""
        storage, registry = self._world.storage, self._world.registry
        if kind.resource == NAMESPACES:
            for inner in registry.namespaced():
                yield from ((inner, stored) for stored in storage.objects(inner.key, name))
        if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
            for inner in registry.of_definition(name)[:1]:
                yield from ((inner, stored) for stored in storage.objects(inner.key))

    def _finish_containers(self, kind: Kind, namespace: str) -> None:
        registry = self._world.registry
        if namespace:
            self._finish(registry.of(NAMESPACES), namespace)
        if kind.custom:
            self._finish(registry.of(CUSTOM_RESOURCE_DEFINITIONS), kind.custom.crd)

    def _finish(self, kind: Kind, key: str) -> None:
        container = self._world.storage.get(kind.key, key)
        if container and b'"deletionTimestamp"' in container.raw and self.is_due(kind, container.tree()):
            self.remove(kind, container)


def _check_preconditions(kind: Kind, stored: Stored, options: DeleteOptions) -> None:
    # these refusals name the kind, all others the resource
    by_kind = replace(kind.resource, plural=kind.resource.kind)
    if options.uid and options.uid != stored.uid:
        raise conflict(
            by_kind,
            stored.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != str(stored.version):
        raise conflict(
            by_kind,
            stored.name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({stored.version}). The object might have been modified",
        )


def _finalizers(current: list[str], policy: str) -> list[str]:
    """The finalizers after a delete: a policy replaces the previous one; without a policy they stay."""
    if not policy:
        return current
    kept = [finalizer for finalizer in current if finalizer not in (FOREGROUND, ORPHAN)]
    wanted = _FINALIZER_OF_POLICY[policy]
    return [*kept, wanted] if wanted else kept


def _grace(kind: Kind, tree: Json, options: DeleteOptions) -> int:
    """The grace period of a pod in seconds: 0 if nothing of it can be running."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    if kind.resource != PODS or not spec.get("nodeName") or status.get("phase") in _ENDED:
        return 0
    if options.grace is not None:
        return max(options.grace, 0)
    return int(spec.get("terminationGracePeriodSeconds") or 0)
