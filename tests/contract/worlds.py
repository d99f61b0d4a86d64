"""The two worlds as one type: the address of the API, the user, and the time limits.

Both are reached over HTTP with a kubeconfig, by the same transport: the contract includes the wire.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from apis import crd
from kube.client import Client
from kube.config import load_kubeconfig
from kube.credentials import StaticCredentials
from kube.errors import AlreadyExists
from kube.http_transport import HttpTransport
from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, SERVICE_ACCOUNTS, TIDB_CLUSTERS, Resource
from ports.clock import SystemClock
from ports.stopping import Stop
from ports.transport import Request, Response, Transport
from sandbox.conditions import holds
from sandbox.world import DataPlaneWorld, World, load_crds
from tests.controlplane.processes import ControlPlane

_DEADLINE = 30.0
_PAUSE = 0.05
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its body decoded where it is JSON."""

    status: int
    content_type: str
    tree: Json
    text: str

    @property
    def reason(self) -> str:
        """The reason of a Status, empty when there is none."""
        reason: str = self.tree.get("reason", "")
        return reason


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two worlds, as admin."""

    name: str
    transport: Transport
    kubeconfig: Path
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> Client:
        """The typed API."""
        return Client(self.transport, user_agent="contract")

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """Send one request as it is; bytes go as they are, anything else as JSON."""
        raw = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"accept": accept} if body is None else {"accept": accept, "content-type": content_type}
        return _answer(self.transport.request(Request(method, path, headers, raw)))

    @contextlib.contextmanager
    def reached_with(self, token: str) -> Iterator["Side"]:
        """The same world for the user whom the token identifies."""
        clock = SystemClock()
        config = replace(load_kubeconfig(str(self.kubeconfig), clock), credentials=StaticCredentials(f"Bearer {token}"))
        transport = HttpTransport(config, {}, clock)
        try:
            yield Side(self.name, transport, self.kubeconfig)
        finally:
            transport.close()

    def new_namespace(self) -> str:
        """A fresh namespace in which pods may be created."""
        name = f"contract-{next(self._numbers)}"
        self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        eventually(lambda: self.exists(SERVICE_ACCOUNTS, "default", name))
        return name

    def exists(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """True if an object exists now."""
        return self.client.find(resource, name, namespace) is not None


def eventually(probe: Callable[[], _T], within: float = _DEADLINE) -> _T:
    """The first true answer of `probe`. Raises AssertionError with the last one after `within` seconds."""
    clock, stop = SystemClock(), Stop()
    end = clock.now() + within
    while not (found := probe()):
        assert clock.now() < end, f"still {found!r} after {within} s"
        stop.wait(clock, _PAUSE)
    return found


def throughout(seconds: float, probe: Callable[[], bool]) -> bool:
    """True if `probe` holds all the time."""
    clock, stop = SystemClock(), Stop()
    end = clock.now() + seconds
    while clock.now() < end:
        if not probe():
            return False
        stop.wait(clock, _PAUSE)
    return True


@contextlib.contextmanager
def sandbox(directory: Path) -> Iterator[Side]:
    """The sandbox on a loopback port, with its own nodes."""
    world = World(crds=_definitions())
    try:
        world.start()
        with _reached("sandbox", world.write_kubeconfig(directory)) as side:
            yield side
    finally:
        world.stop()


@contextlib.contextmanager
def real(control_plane: ControlPlane) -> Iterator[Side]:
    """The real control plane with the sandbox's nodes in front of it."""
    with _reached("real", control_plane.kubeconfig()) as side:
        for definition in _definitions():
            with contextlib.suppress(AlreadyExists):
                side.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        nodes = DataPlaneWorld(side.transport)
        try:
            nodes.start()
            yield side
        finally:
            nodes.stop()


def _definitions() -> list[Json]:
    """The definitions of all kinds, as in their files."""
    return [each for kind in crd.KINDS for each in load_crds(crd.DIRECTORY / kind.file_name)]


@contextlib.contextmanager
def _reached(name: str, kubeconfig: Path) -> Iterator[Side]:
    clock = SystemClock()
    transport = HttpTransport(load_kubeconfig(str(kubeconfig), clock), {}, clock)
    try:
        yield Side(name, transport, kubeconfig)
    finally:
        transport.close()


def is_serving(side: Side) -> bool:
    """True if custom resources are served and explained, and pods find a node."""
    explained = side.send("GET", f"/openapi/v3{TIDB_CLUSTERS.root}")
    if TIDB_CLUSTERS.kind not in explained.text:
        return False
    definitions = side.client.list_page(CUSTOM_RESOURCE_DEFINITIONS).items
    nodes = [node.decode() for node in side.client.list_page(NODES).items]
    return all(holds(each.decode(), "Established") for each in definitions) and any(
        holds(node, "Ready") and not node["spec"].get("taints") for node in nodes
    )


def _answer(response: Response) -> Answer:
    content_type = response.headers.get("content-type", "")
    text = response.body.decode("utf-8", "replace")
    tree = msgspec.json.decode(response.body) if content_type.startswith("application/json") else {}
    return Answer(response.status, content_type, tree if isinstance(tree, dict) else {}, text)
