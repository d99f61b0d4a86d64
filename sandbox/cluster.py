"""An actor's view of the cluster: reads from the mirror, writes through the client.

Actors are level-triggered: losing a race is not an error, because the winning write reaches the mirror and triggers the
actor again. The runner handles all other refusals.
"""

import contextlib
from collections.abc import Mapping, Sequence

from kube.client import Client
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Json
from kube.resources import EVENTS, Resource
from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.mirror import Mirror
from sandbox.stamps import micro_stamp, stamp

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Cluster:
    """Reads from the mirror, writes through the client. Trees are shared: copy them before a change."""

    def __init__(self, mirror: Mirror, client: Client, clock: Clock, randomness: Randomness, component: str) -> None:
        self._mirror = mirror
        self._client = client
        self._randomness = randomness
        self._component = component
        self.clock = clock

    @property
    def changes(self) -> int:
        """Grows whenever a mirrored object has changed, and sometimes without a change."""
        return self._mirror.changes

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """One object, or None."""
        return self._mirror.get(resource, namespace, name)

    def list(self, resource: Resource, namespace: str = "") -> list[Json]:
        """Objects of a namespace (empty: all), in the order of their names."""
        return self._mirror.list(resource, namespace)

    def by_key(self, resource: Resource) -> dict[str, Json]:
        """All objects by `namespace/name`, unordered; the namespace of cluster-scoped objects is empty."""
        return self._mirror.by_key(resource)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The mirrored resources."""
        return self._mirror.resources

    def create(self, resource: Resource, tree: Json) -> Json | None:
        """Create an object; None if its name is taken or its namespace is gone."""
        namespace = tree["metadata"].get("namespace", "")
        try:
            return self._mirror.observe(resource, self._client.create(resource, tree, namespace))
        except (AlreadyExists, NotFound):
            return None

    def put(self, resource: Resource, tree: Json) -> None:
        """Create an object of a resource that is not mirrored, or merge `tree` into it."""
        meta = tree["metadata"]
        namespace = meta.get("namespace", "")
        try:
            self._client.patch(resource, meta["name"], namespace, tree)
        except NotFound:
            with contextlib.suppress(AlreadyExists, NotFound):
                self._client.create(resource, tree, namespace)

    def patch(self, resource: Resource, tree: Json, patch: Json, subresource: str = "") -> Json | None:
        """Merge `patch` into the version in `tree`; None if the object has changed."""
        meta = tree["metadata"]
        guarded = patch | {"metadata": patch.get("metadata", {}) | {"resourceVersion": meta["resourceVersion"]}}
        try:
            answer = self._client.patch(
                resource, meta["name"], meta.get("namespace", ""), guarded, subresource=subresource
            )
        except (Conflict, NotFound):
            return None
        return self._mirror.observe(resource, answer)

    def set_status(self, resource: Resource, tree: Json, status: Json) -> Json | None:
        """Replace the status if it differs; None if nothing was written."""
        if tree.get("status", {}) == status:
            return None
        meta = tree["metadata"]
        try:
            answer = self._client.replace(
                resource, meta["name"], meta.get("namespace", ""), tree | {"status": status}, subresource="status"
            )
        except (Conflict, NotFound):
            return None
        return self._mirror.observe(resource, answer)

    def delete(
        self,
        resource: Resource,
        tree: Json,
        grace: int | None = None,
        *,
        only_if_unchanged: bool = False,
        propagation: str = "",
    ) -> None:
        """Delete exactly this object, or even this version; it may already be gone or replaced."""
        meta = tree["metadata"]
        with contextlib.suppress(NotFound, Conflict):
            self._client.delete(
                resource,
                meta["name"],
                meta.get("namespace", ""),
                uid=meta["uid"],
                resource_version=meta["resourceVersion"] if only_if_unchanged else "",
                grace_period_seconds=grace,
                propagation=propagation,
            )

    def live_uid(self, resource: Resource, namespace: str, name: str) -> str:
        """The current UID of an object, read past the mirror. Raises NotFound and other ApiErrors."""
        return self._client.get(resource, name, namespace).metadata.uid

    def bind(self, pod: Json, node: str) -> None:
        """Bind a pod to a node."""
        meta = pod["metadata"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        named = {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": target}
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
        with contextlib.suppress(NotFound, Conflict):
            self._client.request("POST", path, body=binding)

    def event(self, regarding: Json, kind: str, reason: str, message: str, action: str = "") -> None:
        """Record an event about an object. `kind` is Normal or Warning.

        With an `action` it is an event of the newer API, with one time in microseconds and no count, as schedulers
        send.
        """
        meta = regarding["metadata"]
        namespace = meta.get("namespace") or "default"
        now = stamp(self.clock.wall())
        when: Json = {"source": {"component": self._component}, "firstTimestamp": now, "lastTimestamp": now, "count": 1}
        if action:
            when = {"source": {}, "eventTime": micro_stamp(self.clock.wall()), "action": action}
        involved = {
            "apiVersion": regarding.get("apiVersion", "v1"),
            "kind": regarding["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
        }
        if meta.get("namespace"):
            involved |= {"namespace": meta["namespace"], "resourceVersion": meta["resourceVersion"]}
        self.create(
            EVENTS,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{meta['name']}.{self.suffix(16)}", "namespace": namespace},
                "involvedObject": involved,
                "type": kind,
                "reason": reason,
                "message": message,
                "reportingComponent": self._component,
                "reportingInstance": self._component,
                **when,
            },
        )

    def suffix(self, length: int = 5) -> str:
        """A random suffix for a name."""
        return "".join(_SUFFIX[self._randomness.integer(0, len(_SUFFIX) - 1)] for _ in range(length))

    def selected(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> Sequence[Json]:
        """Objects of a namespace that carry all of `labels`; none when `labels` is empty."""
        return self._mirror.selected(resource, namespace, labels) if labels else []


def labels_of(tree: Json) -> Mapping[str, str]:
    """An object's labels, empty when it has none."""
    labels: Mapping[str, str] = tree["metadata"].get("labels") or {}
    return labels
