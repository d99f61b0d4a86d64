"""What else a manifest has beside clusters: initializers and monitors, shown and waited for once the clusters are Ready."""

from collections.abc import Sequence

from rich.console import Console

from cli.manifests import Manifest
from kube.client import Client
from kube.objects import condition_of
from kube.resources import TIDB_INITIALIZERS, TIDB_MONITORS, Resource
from ports.clock import Clock
from ports.stopping import Stop

_PAUSE = 0.2
_KINDS: dict[str, Resource] = {resource.kind: resource for resource in (TIDB_INITIALIZERS, TIDB_MONITORS)}
"""Those with a condition Ready."""


class Others:
    """The objects of a manifest that have a condition Ready, clusters aside."""

    def __init__(self, documents: Sequence[Manifest]) -> None:
        self._waiting = {(each.kind, each.namespace, each.name): "" for each in documents if each.kind in _KINDS}

    def get_ready(self, client: Client, console: Console, clock: Clock, stop: Stop, within: float) -> str:
        """Show what each waits for until all are Ready; what is left to say of those that are not in time.

        Raises ApiError, TransportError.
        """
        deadline = clock.now() + within
        while self._waiting and clock.now() < deadline and not stop.is_set():
            for key in list(self._waiting):
                self._look(client, console, *key)
            if self._waiting:
                stop.wait(clock, _PAUSE)
        return "\n".join(f"{kind} {name} is not Ready: {why}" for (kind, _, name), why in self._waiting.items())

    def _look(self, client: Client, console: Console, kind: str, namespace: str, name: str) -> None:
        there = client.find(_KINDS[kind], name, namespace)
        status = (there.decode().get("status") or {}) if there else {}
        ready = condition_of(status.get("conditions") or (), "Ready")
        said = f"{ready.get('reason')}: {ready.get('message')}" if ready else "not looked at yet"
        if said != self._waiting[kind, namespace, name]:
            console.print(f"{name}  {kind:<12} {said}", markup=False, highlight=False, soft_wrap=True)
        self._waiting[kind, namespace, name] = said
        if ready.get("status") == "True":
            del self._waiting[kind, namespace, name]
