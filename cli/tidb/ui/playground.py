"""The playground of a sandbox: nodes are lost and healed, with `tidb-operator sandbox fault` and `heal`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec

from cli.failures import Failure
from kube.client import Client
from kube.objects import Json
from kube.resources import NODES
from sandbox.fault_requests import PATH

FAULTS: Mapping[str, str] = {"node-lost": "Lose", "node-cut-off": "Cut off"}
"""What a button does to a node, by the fault."""


@dataclass(frozen=True, slots=True)
class PlaygroundView:
    """The nodes, and the faults that are active."""

    nodes: Sequence[str]
    active: Sequence[str]

    def can(self, node: str) -> bool:
        """True if the node has no fault of a button."""
        return not any(f"{each} {node}" in self.active for each in FAULTS)


def read_playground(client: Client) -> PlaygroundView:
    """What is broken in the sandbox. Raises ApiError, TransportError."""
    nodes = client.list_page(NODES, metadata_only=True).items
    return PlaygroundView([node.metadata.name for node in nodes], _faults(client, "GET")["faults"])


def play(client: Client, asked: Mapping[str, str]) -> None:
    """Break a node, or heal a fault, or all. Raises Failure, ApiError, TransportError."""
    if "heal" in asked:
        _faults(client, "DELETE", f"?{urlencode({'fault': asked['heal']})}" if asked["heal"] else "")
    elif asked.get("fault") in FAULTS:
        _faults(client, "POST", body={"fault": asked["fault"], "on": asked.get("on", "")})
    else:
        raise Failure("the playground has no such button")


def _faults(client: Client, method: str, query: str = "", body: Json | None = None) -> Json:
    answer: Json = msgspec.json.decode(client.request(method, f"{PATH}{query}", body=body).body)
    return answer
