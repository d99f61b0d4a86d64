"""Writing labels and annotations of objects that are not ours to shape: only what differs, others' stay."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kube.objects import Json, Object
from kube.resources import Resource
from member.context import ClusterContext


@dataclass(frozen=True, slots=True)
class DesiredMetadata:
    """What an object should carry, and the annotations it should not."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()

    def beside(self, other: "DesiredMetadata") -> "DesiredMetadata":
        """Both; this one where they differ."""
        return DesiredMetadata(
            {**other.labels, **self.labels},
            {**other.annotations, **self.annotations},
            (*self.without, *other.without),
        )

    def matches(self, there: Object) -> bool:
        """Whether the object carries it."""
        meta = there.metadata
        return (
            self.labels.items() <= meta.labels.items()
            and self.annotations.items() <= meta.annotations.items()
            and not any(key in meta.annotations for key in self.without)
        )


def apply_metadata(ctx: ClusterContext, resource: Resource, there: Object, desired: DesiredMetadata) -> Object:
    """Bring labels and annotations of an object to what is desired, with at most one request; the object as it is then.

    Raises Conflict when it has changed, other ApiErrors, TransportError.
    """
    meta = there.metadata
    if meta.deletion_timestamp or desired.matches(there):
        return there
    body: Json = {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": dict(desired.labels),
            "annotations": dict(desired.annotations),
        }
    }
    removed = {key: meta.annotations[key] for key in desired.without if key in meta.annotations}
    return ctx.deps.applier.apply(resource, body, there, applied={"metadata": {"annotations": removed}})
