"""Writing labels and annotations of objects that are not ours to shape: only what differs, others' stay."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kube.objects import Json, Object
from kube.resources import Resource
from member.context import ReconcileContext


@dataclass(frozen=True, slots=True)
class Marks:
    """What an object should carry, and the annotations it should not."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()

    def on(self, there: Object) -> bool:
        """Whether the object is marked so."""
        meta = there.metadata
        return (
            self.labels.items() <= meta.labels.items()
            and self.annotations.items() <= meta.annotations.items()
            and not any(key in meta.annotations for key in self.without)
        )


def mark(ctx: ReconcileContext, resource: Resource, there: Object, marks: Marks) -> Object:
    """Bring the marks of an object to what is wanted, with at most one request; the object as it is then.

    Raises Conflict when it has changed, other ApiErrors, TransportError.
    """
    meta = there.metadata
    if meta.deletion_timestamp or marks.on(there):
        return there
    desired: Json = {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": dict(marks.labels),
            "annotations": dict(marks.annotations),
        }
    }
    removed = {key: meta.annotations[key] for key in marks.without if key in meta.annotations}
    return ctx.deps.applier.apply(resource, desired, there, applied={"metadata": {"annotations": removed}})
