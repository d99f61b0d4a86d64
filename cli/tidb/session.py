"""One call of a command: the API server, the namespace, the clock, and where the answer goes."""

from dataclasses import dataclass

from cli.tidb.connection import Server
from cli.tidb.output import Output
from kube.client import Client
from ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with. `asked_namespace` is that of `-n`, empty without it."""

    server: Server
    clock: Clock
    output: Output
    asked_namespace: str = ""

    @property
    def namespace(self) -> str:
        """That of `-n`, else of the context. Raises Failure."""
        return self.asked_namespace or self.server.namespace

    @property
    def client(self) -> Client:
        """The API. Raises Failure."""
        return self.server.client
