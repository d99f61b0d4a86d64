"""Faults of nodes and pods in the kubelet (reliability.md FP6, FP7)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase

from kube.objects import Json
from sandbox.kubelet import images


@dataclass(slots=True)
class KubeletFaults:
    """Globs: pods as `namespace/name`, images as written, nodes by name. A match has the fault."""

    gone: set[str] = field(default_factory=set)
    """Nodes whose machine stands still with all its processes."""
    cut_off: set[str] = field(default_factory=set)
    """Nodes whose kubelet cannot reach the API server; their processes continue."""
    missing_images: set[str] = field(default_factory=set)
    foreign_images: set[str] = field(default_factory=set)
    """Images that exist only for other architectures."""
    pushed_images: set[str] = field(default_factory=set)
    """Images that can be pulled although no release has that name."""
    crashing: set[str] = field(default_factory=set)
    """Pods whose containers end as soon as they start."""
    full: set[str] = field(default_factory=set)
    """Pods with full volumes: their containers end as soon as they start, with a log line."""
    out_of_memory: set[str] = field(default_factory=set)
    """Pods whose containers are killed by the kernel as soon as they start."""
    slow: dict[str, float] = field(default_factory=dict)
    """Pods whose processes need additional seconds until they serve."""
    unready: set[str] = field(default_factory=set)
    """Pods whose readiness probe fails, whatever their processes say."""
    stuck: set[str] = field(default_factory=set)
    """Pods whose deletion never completes."""

    @property
    def are_none(self) -> bool:
        """True without any fault."""
        return not any(getattr(self, each.name) for each in fields(self))

    def image_trouble(self, image: str) -> tuple[str, str] | None:
        """Why an image cannot be pulled, as reason and message; None if it can."""
        if any(fnmatchcase(image, glob) for glob in self.missing_images):
            return images.not_found(image)
        if any(fnmatchcase(image, glob) for glob in self.foreign_images):
            return images.foreign(image)
        if any(fnmatchcase(image, glob) for glob in self.pushed_images):
            return None
        return images.trouble(image)

    def is_silent(self, node: str) -> bool:
        """True if the node's kubelet does not report."""
        return node in self.gone or node in self.cut_off


def slowness(globs: Mapping[str, float], pod: Json) -> float:
    """Additional seconds that the pod's processes need to start."""
    return max((seconds for glob, seconds in globs.items() if matches_any((glob,), pod)), default=0.0)


def matches_any(globs: Iterable[str], pod: Json) -> bool:
    """True if one of the globs matches the pod."""
    if not globs:
        return False
    meta = pod["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    return any(fnmatchcase(name, glob) for glob in globs)
