"""The owner of a field: the operator, if it has written it, or Kubernetes has copied it from the operator's objects.

Any other client may change all other fields: those that the API server fills in or allocates, and foreign ones.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from simulate.engine.calls import Call, Port
from simulate.families.field_changes import NEW, Change, Path

_COPIED = ("labels", "annotations")


class Owners:
    """The writes of an operator that has brought a cluster up."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._written: dict[tuple[str, str], list[Json]] = {}
        for call in calls:
            if call.port is Port.KUBERNETES:
                self._written.setdefault((call.target.resource, call.target.name), []).append(call.body())
        self._copied = set(self._of_templates())

    def made(self) -> Iterator[tuple[str, str, Json]]:
        """Resource, name and body of the created objects."""
        for (resource, name), bodies in self._written.items():
            if "kind" in bodies[0]:
                yield resource, name, bodies[0]

    def theirs(self, resource: Resource, tree: Json, change: Change) -> Iterator[Path]:
        """The fields of a change that the operator does not own, e.g. foreign keys in metadata (R27).

        A list is one field.
        """
        if change.verb != "add":
            yield from self._theirs(resource, tree, change.path)
        elif change.path[0] == "metadata":
            yield (*change.path, NEW)

    def _theirs(self, resource: Resource, tree: Json, path: Path) -> Iterator[Path]:
        value = value_at(tree, path)
        if isinstance(value, dict) and value:
            for key in value:
                yield from self._theirs(resource, tree, (*path, key))
        elif not self._is_ours(resource, tree, path):
            yield path

    def _is_ours(self, resource: Resource, tree: Json, path: Path) -> bool:
        bodies = self._written.get((str(resource), tree["metadata"]["name"]), ())
        if any(value_at(body, path) is not None for body in bodies):
            return True
        may_be_copied = resource in (PODS, PERSISTENT_VOLUME_CLAIMS) and path[:1] == ("metadata",)
        return may_be_copied and (*path[1:], str(value_at(tree, path))) in self._copied

    def _of_templates(self) -> Iterator[tuple[str, str, str]]:
        """The labels and annotations that StatefulSets give their pods, and the pods' claims."""
        for (resource, _), bodies in self._written.items():
            if resource == str(STATEFUL_SETS):
                for kind in _COPIED:
                    for key, value in (value_at(bodies[0], ("spec", "template", "metadata", kind)) or {}).items():
                        yield kind, key, value


def value_at(tree: Any, path: Path) -> Any:
    """The value at a path, or None."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree
