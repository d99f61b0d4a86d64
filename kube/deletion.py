"""The one door for destruction (design.md 3.6, F1, F5, EXP-1).

Deleting takes LiveObject, and only a live read makes LiveObject: what a cache holds, or does not hold, proves nothing.
The evidence names the very object and version that was read; when either changed since, the server refuses.
"""

import structlog

from kube.client import Client
from kube.errors import NotFound
from kube.objects import Object
from kube.resources import Resource

_log = structlog.get_logger(__name__)

_LIVE_READ = object()


class LiveObject:
    """An object as the API server showed it in this reconcile. Made by `Destroyer.observe` only."""

    __slots__ = ("object", "resource")

    def __init__(self, maker: object, resource: Resource, live: Object) -> None:
        """Raise TypeError for any maker but a live read."""
        if maker is not _LIVE_READ:
            raise TypeError("evidence comes from Destroyer.observe, which reads the object live")
        self.resource = resource
        self.object = live

    def __repr__(self) -> str:
        """What was seen."""
        return f"<LiveObject of {self.resource} {self.object.key} @{self.object.metadata.resource_version}>"


class Destroyer:
    """Deletes what was seen live."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def observe(self, resource: Resource, name: str, namespace: str = "") -> LiveObject | None:
        """Read an object live; None when it does not exist. Raises as `Client.find`."""
        live = self._client.find(resource, name, namespace)
        return LiveObject(_LIVE_READ, resource, live) if live else None

    def delete(self, evidence: LiveObject, *, propagation: str = "", grace_period_seconds: int | None = None) -> None:
        """Delete the object that was seen, in the version that was seen. Already gone is success.

        Raises Conflict when it changed or was re-created since (observe and decide again), other ApiErrors,
        TransportError, LeaseExpired; TypeError for what was not observed.
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
