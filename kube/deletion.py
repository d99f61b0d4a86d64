"""The one place that deletes objects (design.md 3.6, F1, F5, EXP-1).

A deletion takes a LiveObject, which only a live read creates: the content of a cache proves nothing. The request names
the UID and version that were read; if either has changed, the server refuses.
"""

from kube.client import Client
from kube.errors import NotFound
from kube.objects import Object
from kube.resources import Resource
from ports.lazy_log import get_logger

_log = get_logger(__name__)

_LIVE_READ = object()


class LiveObject:
    """An object as the API server returned it in this reconcile. Only `Destroyer.observe` creates one."""

    __slots__ = ("object", "resource")

    def __init__(self, maker: object, resource: Resource, live: Object) -> None:
        """Raise TypeError unless a live read creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("evidence comes from Destroyer.observe, which reads the object live")
        self.resource = resource
        self.object = live

    def __repr__(self) -> str:
        """The kind, key and version that were read."""
        return f"<LiveObject of {self.resource} {self.object.key} @{self.object.metadata.resource_version}>"


class Destroyer:
    """Deletes objects that were read live."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def observe(self, resource: Resource, name: str, namespace: str = "") -> LiveObject | None:
        """Read an object live; None when it does not exist. Raises like `Client.find`."""
        live = self._client.find(resource, name, namespace)
        return LiveObject(_LIVE_READ, resource, live) if live else None

    def delete(self, evidence: LiveObject, *, propagation: str = "", grace_period_seconds: int | None = None) -> None:
        """Delete an object in the version that was read. If it is already gone, that is a success.

        Raises Conflict if it has changed or been recreated (observe and decide again), other ApiErrors, TransportError,
        LeaseExpired; TypeError for an object that was not read by `observe`.
        """
        if not isinstance(evidence, LiveObject):
            raise TypeError(
                f"only an object that was read live can be deleted: pass what observe returned, not {evidence!r}"
            )
        meta = evidence.object.metadata
        try:
            self._client.delete(
                evidence.resource,
                meta.name,
                meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
            )
        except NotFound:
            return
        _log.info("object deleted", kind=evidence.resource.kind, name=meta.name)
