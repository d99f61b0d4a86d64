"""The garbage collector: deletes objects without living owners; completes foreground and orphan deletions."""

from collections.abc import Hashable, Iterable

from kube.errors import ApiError, NotFound
from kube.objects import Json
from kube.resources import EVENTS, Resource
from sandbox.cluster import Cluster
from sandbox.owners import is_deleted

_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"
_BACKGROUND = "Background"


class GarbageCollector:
    """Follows owner references among the mirrored resources."""

    name = "garbage-collector"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.watches: tuple[Hashable, ...] = tuple(resource for resource in cluster.resources if resource != EVENTS)
        self._by_kind = {(resource.api_version, resource.kind): resource for resource in cluster.resources}
        self._collected = [resource for resource in self._by_kind.values() if resource != EVENTS]
        self._orphaned: set[tuple[str, str]] = set()
        """The UIDs of owners and of their former dependents. An object that its owner adopts again stays adopted."""

    def step(self) -> float | None:
        """Collect all objects that can be collected now."""
        dependents: dict[str, list[tuple[Resource, Json]]] = {}
        owners: list[tuple[Resource, Json]] = []
        for resource in self._collected:
            for tree in self._cluster.list(resource):
                meta = tree["metadata"]
                for reference in meta.get("ownerReferences") or ():
                    dependents.setdefault(reference["uid"], []).append((resource, tree))
                if meta.get("deletionTimestamp") and {_FOREGROUND, _ORPHAN} & set(meta.get("finalizers") or ()):
                    owners.append((resource, tree))
        for resource, owner in owners:
            self._finish(resource, owner, dependents)
        for resource, tree in _distinct(dependents):
            self._collect(resource, tree)
        return None

    def _collect(self, resource: Resource, tree: Json) -> None:
        """Delete an object whose owners are all gone; remove only the missing owners of other objects."""
        if is_deleted(tree):
            return
        references = tree["metadata"]["ownerReferences"]
        left = [
            reference for reference in references if not self._is_gone(reference, tree["metadata"].get("namespace", ""))
        ]
        if not left:
            # an owner may have been added since; without the policy, a Job would leave its pods
            self._cluster.delete(resource, tree, only_if_unchanged=True, propagation=_BACKGROUND)
        elif len(left) < len(references):
            self._cluster.patch(resource, tree, {"metadata": {"ownerReferences": left}})

    def _is_gone(self, reference: Json, namespace: str) -> bool:
        """True if an owner does not exist, after a live read confirms the mirror."""
        resource = self._by_kind.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            return False
        scope = namespace if resource.namespaced else ""
        known = self._cluster.get(resource, scope, reference["name"])
        if known is not None and known["metadata"]["uid"] == reference["uid"]:
            return False
        try:
            return bool(self._cluster.live_uid(resource, scope, reference["name"]) != reference["uid"])
        except NotFound:
            return True
        except ApiError:
            return False

    def _finish(self, resource: Resource, owner: Json, all_dependents: dict[str, list[tuple[Resource, Json]]]) -> None:
        finalizers: list[str] = owner["metadata"]["finalizers"]
        uid = owner["metadata"]["uid"]
        dependents = all_dependents.get(uid, [])
        if _ORPHAN in finalizers:
            left = [(kind, tree) for kind, tree in dependents if (uid, tree["metadata"]["uid"]) not in self._orphaned]
            for kind, tree in left:
                self._orphan(kind, tree, uid)
            done = not left
        else:
            for kind, tree in dependents:
                if not is_deleted(tree):
                    has_own = tree["metadata"]["uid"] in all_dependents and _blocks(tree, uid)
                    self._cluster.delete(kind, tree, propagation="Foreground" if has_own else _BACKGROUND)
            done = not any(_blocks(tree, uid) for _, tree in dependents)
        if done:
            left_over = [each for each in finalizers if each not in (_FOREGROUND, _ORPHAN)]
            self._cluster.patch(resource, owner, {"metadata": {"finalizers": left_over}})

    def _orphan(self, resource: Resource, tree: Json, owner: str) -> None:
        left = [each for each in tree["metadata"]["ownerReferences"] if each["uid"] != owner]
        if self._cluster.patch(resource, tree, {"metadata": {"ownerReferences": left}}) is not None:
            self._orphaned.add((owner, tree["metadata"]["uid"]))


def _blocks(tree: Json, owner: str) -> bool:
    return any(
        bool(reference["uid"] == owner and reference.get("blockOwnerDeletion"))
        for reference in tree["metadata"]["ownerReferences"]
    )


def _distinct(dependents: dict[str, list[tuple[Resource, Json]]]) -> Iterable[tuple[Resource, Json]]:
    found = {tree["metadata"]["uid"]: (resource, tree) for entries in dependents.values() for resource, tree in entries}
    return found.values()
