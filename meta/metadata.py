"""Writes labels and annotations of objects that the operator does not own: only the difference, and foreign
ones stay.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kube.actions import Apply
from kube.objects import Json, Object
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class DesiredMetadata:
    """The labels and annotations that an object should have, and the annotations that it should not have."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()

    def beside(self, other: "DesiredMetadata") -> "DesiredMetadata":
        """The union with another; this one wins."""
        return DesiredMetadata(
            {**other.labels, **self.labels},
            {**other.annotations, **self.annotations},
            (*self.without, *other.without),
        )

    def matches(self, there: Object) -> bool:
        """True if the object has all of them."""
        meta = there.metadata
        return (
            self.labels.items() <= meta.labels.items()
            and self.annotations.items() <= meta.annotations.items()
            and meta.annotations.keys().isdisjoint(self.without)
        )


async def apply_metadata(resource: Resource, there: Object, desired: DesiredMetadata) -> Object:
    """Bring labels and annotations to the desired state with at most one request; return the object.

    Raises Conflict if the object has changed, other ApiErrors, TransportError.
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
    return await Apply(resource, body, there, applied={"metadata": {"annotations": removed}})
