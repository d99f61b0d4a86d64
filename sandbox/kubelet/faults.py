"""What can be wrong with nodes and pods, as far as a kubelet is concerned (reliability.md FP6, FP7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase

from kube.objects import Json
from sandbox.kubelet import images


@dataclass(slots=True)
class KubeletFaults:
    """Globs: pods as `namespace/name`, images as they are written, nodes by name alone. What is in is wrong."""

    gone: set[str] = field(default_factory=set)
    """Nodes whose machine stands still, with all it ran."""
    cut_off: set[str] = field(default_factory=set)
    """Nodes whose kubelet reaches no API server; what it ran runs on."""
    missing_images: set[str] = field(default_factory=set)
    foreign_images: set[str] = field(default_factory=set)
    """Images that are there for other architectures alone."""
    pushed_images: set[str] = field(default_factory=set)
    """Images that are there although none of that name was released."""
    crashing: set[str] = field(default_factory=set)
    """Pods whose containers end as soon as they start."""
    full: set[str] = field(default_factory=set)
    """Pods whose volumes are full: their containers end as soon as they start, and say so in their logs."""
    out_of_memory: set[str] = field(default_factory=set)
    """Pods whose containers are killed by the kernel as soon as they start."""
    slow: dict[str, float] = field(default_factory=dict)
    """Pods whose processes need so many seconds more until they serve."""
    unready: set[str] = field(default_factory=set)
    """Pods whose readiness probe fails, whatever their processes say."""
    stuck: set[str] = field(default_factory=set)
    """Pods whose deletion never ends."""

    @property
    def are_none(self) -> bool:
        """Whether nothing is wrong."""
        return not any(getattr(self, each.name) for each in fields(self))

    def image_trouble(self, image: str) -> tuple[str, str] | None:
        """Why an image can't be pulled, as reason and message; None when it can."""
        if any(fnmatchcase(image, glob) for glob in self.missing_images):
            return images.not_found(image)
        if any(fnmatchcase(image, glob) for glob in self.foreign_images):
            return images.foreign(image)
        if any(fnmatchcase(image, glob) for glob in self.pushed_images):
            return None
        return images.trouble(image)

    def is_silent(self, node: str) -> bool:
        """Whether nobody reports for the node."""
        return node in self.gone or node in self.cut_off


def slowness(globs: Mapping[str, float], pod: Json) -> float:
    """How many seconds longer the pod's processes need to start."""
    return max((seconds for glob, seconds in globs.items() if matches_any((glob,), pod)), default=0.0)


def matches_any(globs: Iterable[str], pod: Json) -> bool:
    """Whether one of the globs is meant for the pod."""
    if not globs:
        return False
    meta = pod["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    return any(fnmatchcase(name, glob) for glob in globs)
