"""One call of a command: the API server, the namespace, the clock, and the output."""

from dataclasses import dataclass

from cli.tidb.connection import Server
from cli.tidb.output import Output
from kube.client import Client
from ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Session:
    """The environment of a command. `asked_namespace` is the value of `-n`, or empty."""

    server: Server
    clock: Clock
    output: Output
    asked_namespace: str = ""

    @property
    def namespace(self) -> str:
        """The namespace in `-n`, else the context's. Raises Failure."""
        return self.asked_namespace or self.server.namespace

    @property
    def client(self) -> Client:
        """The API. Raises Failure."""
        return self.server.client
