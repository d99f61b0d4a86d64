"""The images on the disks of nodes, and the list of them in a Node's status.

As a real kubelet reports it: names with digests first, tags then; the largest images first, at most 50. Sizes and
digests are invented.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from apis.images import parse
from kube.objects import Json

MOST_LISTED = 50
"""The images in a status: the kubelet's default of nodeStatusMaxImages."""

_HUB = "docker.io"
_LEAST, _STEP = 50 * 2**20, 2**20
"""Bytes of the smallest image, and by which others are larger."""


class StoredImages:
    """The images on each node."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, Json]] = {}
        """By node: each name of an image, with the image's entry in the list."""
        self._listed: dict[str, Sequence[Json]] = {}
        """By node: the list of its status, until an image is new."""

    def has(self, node: str, image: str) -> bool:
        """True if the image is on the node."""
        return full_name(image) in self._stored.get(node, ())

    def add(self, node: str, image: str) -> None:
        """Store an image on a node."""
        name = full_name(image)
        if name not in self._stored.setdefault(node, {}):
            self._store(node, _entry(name))

    def recall(self, node: str, listed: Iterable[Json]) -> None:
        """Store the images that a Node lists: an earlier kubelet, or one of another world, has pulled them."""
        for entry in listed:
            self._store(node, entry)

    def listed(self, node: str) -> Sequence[Json]:
        """The list in the node's status; the same one until an image is new."""
        known = self._listed.get(node)
        if known is None:
            entries = {entry["names"][0]: entry for entry in self._stored.get(node, {}).values()}
            by_size = sorted(entries, key=lambda name: (-entries[name].get("sizeBytes", 0), name))
            known = self._listed[node] = [entries[name] for name in by_size[:MOST_LISTED]]
        return known

    def _store(self, node: str, entry: Json) -> None:
        self._stored.setdefault(node, {}).update(dict.fromkeys(entry.get("names") or (), entry))
        self._listed.pop(node, None)


@lru_cache(maxsize=1024)
def full_name(image: str) -> str:
    """The name under which a container runtime stores an image: `docker.io/pingcap/tikv:v8.5.2`.

    A digest makes the tag irrelevant.
    """
    reference = parse(image)
    host, slash, _ = reference.repository.partition("/")
    has_host = slash and ("." in host or ":" in host or host == "localhost")
    repository = reference.repository if has_host else f"{_HUB}/{'' if slash else 'library/'}{reference.repository}"
    return f"{repository}@{reference.digest}" if reference.digest else f"{repository}:{reference.tag or 'latest'}"


def _entry(name: str) -> Json:
    reference = parse(name)
    digest = hashlib.sha256(name.encode()).hexdigest()
    names = [name] if reference.digest else [f"{reference.repository}@sha256:{digest}", name]
    return {"names": names, "sizeBytes": _LEAST + int(digest[:2], 16) * _STEP}
