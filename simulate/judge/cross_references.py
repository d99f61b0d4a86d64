"""Checks an object that refers into another namespace: what it shows, what its status says, that its pods run on."""

import base64
from collections.abc import Iterator

from apis.consent import ALLOWED_FROM, FLAG
from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    STATEFUL_SETS,
)
from sandbox.conditions import holds
from sandbox.world import World
from simulate.engine.hands import named
from simulate.engine.plan import CrossReference
from simulate.engine.state import State

_READABLE = (SECRETS, CONFIG_MAPS, STATEFUL_SETS, DEPLOYMENTS, JOBS, PODS, ROLES, ROLE_BINDINGS, EVENTS)
_RIGHTS = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
_PRIVATE = ("tls.crt", "tls.key")
"""The keys of certificates by which a copy is found; all clusters of a plan share one authority."""
_LINE = 12
"""The characters that make a line of a configuration unmistakable."""


class CrossReferenceJudge:
    """Judges one plan; `target` is the state of the namespace that the source refers to."""

    def __init__(self, world: World, target: State, ends: CrossReference) -> None:
        self._storage = world.server.storage
        self._target = target
        self._source = State(world, ends.namespace, named(ends.source)[1])
        self._ends = ends
        self._serving: frozenset[str] | None = None

    def note_pods(self) -> None:
        """Remember the source's pods, which must keep running."""
        self._serving = self._ready_pods()

    def wrong(self) -> Iterator[str]:
        """What differs from the required end."""
        shown, said = self._shown(), self._said()
        if shown and self._ends.shows is False:
            yield f"{', '.join(shown)} of {self._ends.namespace} shows what is of {self._target.namespace}"
        if self._ends.shows and not shown:
            yield f"nothing in {self._ends.namespace} shows what {self._ends.source} may show: {said}"
        if self._ends.waits != (ALLOWED_FROM in said or FLAG in said):
            yield f"{self._ends.source} must {'' if self._ends.waits else 'not '}wait for a permission: {said}"
        if self._serving is not None and (not self._serving or self._serving - self._ready_pods()):
            yield f"of the pods {sorted(self._serving)} of {self._ends.source}, {sorted(self._ready_pods())} run on"

    def _shown(self) -> list[str]:
        """The objects of the source's namespace that hold something of the target's, and rights in all namespaces."""
        texts = [each.encode() for each in self._private_texts()]
        found = [
            f"{resource.kind} {stored.key}"
            for resource in (*_READABLE, named(self._ends.source)[0])
            for stored in self._storage.objects(str(resource), self._ends.namespace)
            if any(text in stored.raw for text in texts)
        ]
        own = [(kind, each["metadata"]["name"]) for kind in _RIGHTS for each in self._source.all(kind)]
        return found + [f"{kind.kind} {name}" for kind, name in own if name.startswith(f"{self._ends.namespace}-")]

    def _private_texts(self) -> Iterator[str]:
        for secret in self._target.all(SECRETS):
            for key in _PRIVATE:
                if encoded := (secret.get("data") or {}).get(key):
                    yield encoded
                    yield base64.b64decode(encoded).decode().splitlines()[1]
        for users in (each for each in self._target.all(CONFIG_MAPS) if "ownerReferences" not in each["metadata"]):
            lines = (line for value in (users.get("data") or {}).values() for line in value.splitlines())
            yield from (line for line in lines if len(line) >= _LINE)

    def _said(self) -> str:
        tree = self._source.get(*named(self._ends.source)) or {}
        conditions: list[Json] = (tree.get("status") or {}).get("conditions") or []
        return "; ".join(
            f"{condition.get('type')} {condition.get('reason')}: {condition.get('message')}" for condition in conditions
        )

    def _ready_pods(self) -> frozenset[str]:
        return frozenset(pod["metadata"]["uid"] for pod in self._source.all(PODS) if holds(pod, "Ready"))
