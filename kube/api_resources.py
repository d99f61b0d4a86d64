"""API discovery, as far as it changes how the operator writes."""

import threading

import msgspec

from kube.client import Client
from kube.errors import NotFound
from kube.resources import Resource

_ABSENT = 600.0
"""Seconds for which a missing group is not looked up again."""


class _ApiResource(msgspec.Struct):
    name: str


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource]


_LIST = msgspec.json.Decoder(_ApiResourceList)


class ApiResources:
    """The resources and subresources of each group and version, read once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._names: dict[str, frozenset[str]] = {}
        self._absent_until: dict[str, float] = {}

    def has_subresource(self, resource: Resource, subresource: str) -> bool:
        """True if the server has `<resource>/<subresource>`. Raises ApiError, TransportError."""
        return f"{resource.plural}/{subresource}" in self._served(resource.root)

    def serves(self, resource: Resource, now: float) -> bool:
        """True if the server has a resource; `now` is in monotonic seconds. Raises ApiError, TransportError."""
        if now < self._absent_until.get(resource.root, now):
            return False
        try:
            return resource.plural in self._served(resource.root)
        except NotFound:
            self._absent_until[resource.root] = now + _ABSENT
            return False

    def forget(self, resource: Resource) -> None:
        """Read again the next time."""
        with self._lock:
            self._names.pop(resource.root, None)

    def _served(self, root: str) -> frozenset[str]:
        with self._lock:
            known = self._names.get(root)
        if known is not None:
            return known
        answer = self._client.get_as(root, _LIST)
        names = frozenset(resource.name for resource in answer.resources)
        with self._lock:
            self._names[root] = names
        return names
