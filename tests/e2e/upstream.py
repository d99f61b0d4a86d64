"""TiDB Operator v1.6 itself, built from its Go module, in front of one of our worlds.

It takes no proxy from its environment. So it is linked to look for hosts in a file `hosts` of its working directory;
there each server of a cluster has an address of 127.0.0.0/8, at which a relay passes connections on to the proxy.

With PD's etcd it speaks gRPC, which the sandbox does not: it meets a real, empty one.
"""

import asyncio
import contextlib
import fcntl
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dataplane.addresses import PD_CLIENT_PORT, TIDB_STATUS_PORT, TIKV_STATUS_PORT
from tests.controlplane.processes import BINARIES, free_port
from tests.e2e.operators import ROOT

BINARY = ROOT / "hack" / "upstream" / "bin" / "tidb-controller-manager"
ADVANCED_CONTROLLER = BINARY.parent / "advanced-statefulset-controller"
_PODS = 5
"""The most pods of a component that have a name."""
_PIECE = 1 << 16
_HTTP2 = b"PRI "
"""The beginning of a gRPC connection."""


def skip_where_it_is_missing(binary: Path = BINARY) -> None:
    """Skip with the reason, or fail where everything is required."""
    if not binary.exists():
        assert not os.environ.get("REQUIRE_EVERYTHING"), f"{binary} is missing"
        pytest.skip(f"no {binary.name}: run `make upstream`")


def ordinals() -> Path:
    """The program that answers with the ordinals of Advanced StatefulSets; skips where it was not built."""
    binary = BINARY.parent / "ordinals"
    skip_where_it_is_missing(binary)
    return binary


@dataclass(frozen=True, slots=True)
class Upstream:
    """A running process and its output."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text("utf-8", "replace")


@contextlib.contextmanager
def running(
    directory: Path, environment: Mapping[str, str], clusters: Sequence[tuple[str, str]], *flags: str
) -> Iterator[Upstream]:
    """v1.6 as it is deployed, for clusters `(namespace, name)`; `environment` as for our operator.

    Its port for metrics is fixed, so it waits for another v1.6 on this machine.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "v1.6.log"
    with contextlib.ExitStack() as stack:
        proxy = urlsplit(environment["HTTP_PROXY"])
        assert proxy.hostname is not None
        assert proxy.port is not None
        fcntl.flock(stack.enter_context(BINARY.open("rb")), fcntl.LOCK_EX)
        etcd = stack.enter_context(_etcd(directory))
        servers = {}
        for at, (host, port) in enumerate(each for cluster in clusters for each in _servers(*cluster)):
            servers[f"127.16.{at // 250}.{at % 250 + 1}", port] = host
        stack.enter_context(_relays(servers, (proxy.hostname, proxy.port), etcd))
        (directory / "hosts").write_text("".join(f"{address} {host}\n" for (address, _), host in servers.items()))
        command = [
            str(BINARY),
            "-cluster-scoped=true",
            "-tidb-discovery-image=pingcap/tidb-operator:v1.6.6",
            "-v=2",
            *flags,
        ]
        environ = {"PATH": os.environ["PATH"], **{key: environment[key] for key in ("KUBECONFIG", "NAMESPACE")}}
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(command, cwd=directory, env=environ, stdout=output, stderr=output)
        try:
            yield Upstream(process, log)
        finally:
            process.terminate()
            process.wait()


def _servers(namespace: str, name: str) -> Iterator[tuple[str, int]]:
    """The hosts that v1.6 calls, and their ports."""
    yield f"{name}-pd.{namespace}", PD_CLIENT_PORT
    for component, port in (("pd", PD_CLIENT_PORT), ("tikv", TIKV_STATUS_PORT), ("tidb", TIDB_STATUS_PORT)):
        for ordinal in range(_PODS):
            host = f"{name}-{component}-{ordinal}.{name}-{component}-peer.{namespace}"
            yield host, port
            yield f"{host}.svc", port


@contextlib.contextmanager
def _etcd(directory: Path) -> Iterator[tuple[str, int]]:
    """A running etcd: where it listens."""
    host, port, peers = "127.0.0.1", free_port(), free_port()
    command = [str(BINARIES / "etcd"), f"--data-dir={directory / 'etcd'}", f"--listen-peer-urls=http://{host}:{peers}"]
    command += [f"--{each}-client-urls=http://{host}:{port}" for each in ("listen", "advertise")]
    with (directory / "etcd.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield host, port
        finally:
            process.terminate()


@contextlib.contextmanager
def _relays(servers: Mapping[tuple[str, int], str], proxy: tuple[str, int], etcd: tuple[str, int]) -> Iterator[None]:
    """Forward the requests to each address to its host, through the proxy, except for gRPC."""
    listening: Future[Callable[[], object]] = Future()

    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for (address, port), host in servers.items():
                relay = partial(_relay, f"{host}:{port}", proxy, etcd)
                await stack.enter_async_context(await asyncio.start_server(relay, address, port))
            ended = asyncio.Event()
            listening.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="relays")
    thread.start()
    end = listening.result(timeout=10.0)
    try:
        yield
    finally:
        end()
        thread.join()


async def _relay(
    host: str,
    proxy: tuple[str, int],
    etcd: tuple[str, int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection until one of its sides or the relays end, without an error message."""
    over = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)
    with contextlib.suppress(*over), contextlib.closing(writer):
        beginning = await reader.readexactly(len(_HTTP2))
        is_grpc = beginning == _HTTP2
        answers, through = await asyncio.open_connection(*(etcd if is_grpc else proxy))
        with contextlib.closing(through):
            if not is_grpc and not await _is_connected(answers, through, host):
                return
            through.write(beginning)
            both = [asyncio.ensure_future(each) for each in (_copy(reader, through), _copy(answers, writer))]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for each in both:
                each.cancel()


async def _is_connected(answers: asyncio.StreamReader, proxy: asyncio.StreamWriter, host: str) -> bool:
    """Ask a proxy for a connection; whether there is one now."""
    proxy.write(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = await answers.readuntil(b"\r\n\r\n")
    return b" 200 " in answer.partition(b"\r\n")[0]


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()


@contextlib.contextmanager
def advanced_stateful_sets(directory: Path, kubeconfig: Path) -> Iterator[Upstream]:
    """The controller of Advanced StatefulSets, with the arguments of v1.6's chart."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "advanced-statefulset-controller.log"
    elected = (
        "--leader-elect-resource-name=advanced-statefulset-controller",
        "--leader-elect-resource-namespace=default",
    )
    # without an election: a killed one leaves a Lease for which the next one would wait
    command = [str(advanced_controller()), f"--kubeconfig={kubeconfig}", "--v=4", *elected, "--leader-elect=false"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=output)
        try:
            yield Upstream(process, log)
        finally:
            process.terminate()
            process.wait()


def advanced_controller() -> Path:
    """The program of the controller of Advanced StatefulSets, v0.7.0; skips where a user has not put it.

    No registry has it, so it is never required.
    """
    if not ADVANCED_CONTROLLER.exists():
        pytest.skip(
            f"{ADVANCED_CONTROLLER.relative_to(ROOT)} is missing; tests beside that controller need v0.7.0 of it"
        )
    return ADVANCED_CONTROLLER
