"""The shared state of the server's parts: the storage, the ports, and the served kinds."""

from dataclasses import dataclass, field
from datetime import timedelta

from kube.objects import Json
from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.registry import Registry
from sandbox.apiserver.storage import Storage, Stored
from sandbox.apiserver.webhooks import Webhook


@dataclass(frozen=True, slots=True)
class World:
    """One cluster's state and its ports."""

    storage: Storage
    registry: Registry
    clock: Clock
    randomness: Randomness
    webhooks: list[Webhook] = field(default_factory=list)

    def timestamp(self, later: float = 0.0) -> str:
        """The time of day, `later` seconds from now, in the format of metadata: RFC 3339 in UTC, whole seconds."""
        return (self.clock.wall() + timedelta(seconds=later)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def write(self, kind: Kind, tree: Json) -> Stored:
        """Store an object under a new version."""
        return self.storage.write(kind.key, tree, kind.fields)
