"""Many clusters in front of the sandbox's API server, of which one was brought up and the others are copies.

Simulating the pods of a thousand clusters costs more than the operator itself. So one cluster of 3/3/2 becomes Ready in
the sandbox. Its objects are then copied, with other names and UIDs and all statuses, to an API server without other
writers. The first cluster's data plane serves all: a proxy exchanges the names. The operator reads, caches and requests
as if each cluster existed; changes of pods or StatefulSets are not simulated.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from apis.crd import KINDS, definition
from bench.operator_process import OperatorProcess
from bench.place import QPS, QUICK, awaited, cluster
from discovery.app import make_handler
from kube.client import Client
from kube.resources import TIDB_CLUSTERS
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.transport import ByteStream, Request, Response, Transport
from rehearsal.world import DISCOVERY
from sandbox.apiserver.http_server import HttpServer
from sandbox.apiserver.server import ApiServer
from sandbox.apiserver.storage import Snapshot, Stored
from sandbox.apiserver.transport import InProcessTransport
from sandbox.conditions import holds
from sandbox.forward_proxy import ForwardProxy
from sandbox.world import ADMIN, World
from tests.controlplane.processes import free_port
from tests.e2e.worlds import write_kubeconfig

_TOKEN = SystemRandomness().uuid()
_FIRST = "c0000"
_NAME = re.compile(r"\bc\d{4}\b")
_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLUSTER_IP = re.compile(rb"\b10\.96\.(\d+)\.(\d+)\b")
_SERVICES = 64
"""More Services than one cluster has."""
_SETTLE = 40.0
"""Seconds after which the operator has no more writes for the first cluster."""


def name_of(number: int) -> str:
    """The name of a cluster, counted from 0."""
    return f"c{number:04}"


@dataclass(frozen=True, slots=True)
class CopiedClusters:
    """`client` is the administrator's; `operator` runs a process that sees all clusters."""

    client: Client
    kubeconfig: Path
    proxy: str

    def operator(self, *flags: str) -> OperatorProcess:
        """Start a controller-manager that reaches the data plane."""
        environ = {"NAMESPACE": "default", "HTTP_PROXY": self.proxy, "http_proxy": self.proxy, "NO_PROXY": "127.0.0.1"}
        return OperatorProcess(self.kubeconfig, free_port(), [*QPS, *flags], environ)


class _ExchangedNames:
    """The data plane, in which every cluster is the first one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def request(self, request: Request) -> Response:
        found = _NAME.search(request.url)
        if found is None:
            return self._transport.request(request)
        name = found[0].encode()
        body = request.body.replace(name, _FIRST.encode()) if request.body else request.body
        answer = self._transport.request(replace(request, url=request.url.replace(found[0], _FIRST), body=body))
        return replace(answer, body=answer.body.replace(_FIRST.encode(), name))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Open a stream, which no caller does."""
        return self._transport.stream(request, idle_timeout)


@contextlib.contextmanager
def first_cluster(directory: Path) -> Iterator[World]:
    """A sandbox with one Ready cluster and no operator."""
    world = World(timings=QUICK, programs={DISCOVERY: make_handler}, crds=[definition(kind) for kind in KINDS])
    world.start()
    try:
        client = world.client()
        client.create(TIDB_CLUSTERS, cluster(_FIRST), "default")
        _, proxy = world.serve_http()
        operator = CopiedClusters(client, world.write_kubeconfig(directory), proxy).operator()
        try:
            awaited(lambda: holds(client.get(TIDB_CLUSTERS, _FIRST, "default").decode(), "Ready"), "the first cluster")
            _await_rest(operator)
        finally:
            operator.stop()
        yield world
    finally:
        world.stop()


def _await_rest(operator: OperatorProcess) -> None:
    """Wait until the operator has not written for a while."""
    last = [0, 0.0]

    def rests() -> bool:
        spent = operator.requests()
        writes, now = spent.total() - spent["GET"], SystemClock().now()
        if writes != last[0]:
            last[:] = [writes, now]
        return now - last[1] > _SETTLE / 4

    awaited(rests, "the operator to rest", within=2 * _SETTLE, every=1.0)


@contextlib.contextmanager
def copied(world: World, count: int) -> Iterator[CopiedClusters]:
    """`count` clusters, all Ready."""
    server = ApiServer(SystemClock(), SystemRandomness(), {_TOKEN: ADMIN})
    snapshot = world.server.snapshot()
    server.restore(Snapshot(snapshot.version, _multiplied(snapshot, count)))
    http, proxy = HttpServer(server), ForwardProxy(_ExchangedNames(world.data_plane_transport()))
    http.start()
    proxy.start()
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = write_kubeconfig(Path(directory), http.url, token=_TOKEN)
        try:
            yield CopiedClusters(
                Client(InProcessTransport(server, ADMIN)), kubeconfig, f"http://127.0.0.1:{proxy.port}"
            )
        finally:
            http.stop()
            proxy.stop()


def _multiplied(snapshot: Snapshot, count: int) -> dict[str, dict[str, Stored]]:
    return {
        resource: {
            copy.key: copy
            for stored in objects.values()
            for copy in (_copies(stored, count) if _FIRST.encode() in stored.raw else [stored])
        }
        for resource, objects in snapshot.objects.items()
        if not resource.startswith(("events", "leases"))
    }


def _copies(stored: Stored, count: int) -> Iterator[Stored]:
    yield stored
    for number in range(1, count):
        raw = stored.raw.replace(_FIRST.encode(), name_of(number).encode())
        raw = _UID.sub(lambda uid: uid[0][:-6] + b"%06d" % number, raw)  # noqa: B023
        yield _decoded(stored, _CLUSTER_IP.sub(lambda ip: _another_ip(ip, number), raw))  # noqa: B023


def _another_ip(ip: re.Match[bytes], number: int) -> bytes:
    """An address in each cluster's own range, among those that the API server allocates to Services."""
    high, low = divmod(int(ip[1]) * 256 + int(ip[2]) + number * _SERVICES, 256)
    return b"10.%d.%d.%d" % (96 + high // 256, high % 256, low)


class _Meta(msgspec.Struct):
    name: str
    uid: str = ""
    labels: dict[str, str] = {}


class _Head(msgspec.Struct):
    metadata: _Meta


_HEADS = msgspec.json.Decoder(_Head)


def _decoded(original: Stored, raw: bytes) -> Stored:
    meta = _HEADS.decode(raw).metadata
    fields = {**original.fields, "metadata.name": meta.name}
    return replace(original, raw=raw, name=meta.name, uid=meta.uid, labels=meta.labels, fields=fields)
