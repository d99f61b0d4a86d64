"""TiDB Operator v1.6 itself, built from its Go module, in front of one of our worlds.

It takes no proxy from its environment. So it is linked to look for hosts in a file `hosts` of its working directory;
there each server of a cluster has an address of 127.0.0.0/8, at which a relay passes connections on to the proxy.

With PD's etcd it speaks gRPC, which the sandbox does not: it meets a real, empty one.
"""

import contextlib
import fcntl
import os
import selectors
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

import pytest

from dataplane.addresses import PD_CLIENT_PORT, TIDB_STATUS_PORT, TIKV_STATUS_PORT
from tests.controlplane.processes import BINARIES, free_port
from tests.e2e.operators import ROOT

BINARY = ROOT / "hack" / "upstream" / "bin" / "tidb-controller-manager"
_PODS = 5
"""The most pods of a component that have a name."""
_PIECE = 1 << 16
_HTTP2 = b"PRI "
"""How a connection for gRPC begins."""


def skip_where_it_is_missing() -> None:
    """Skip with the reason, or fail where everything is required."""
    if not BINARY.exists():
        assert not os.environ.get("REQUIRE_EVERYTHING"), f"{BINARY} is missing"
        pytest.skip("no TiDB Operator v1.6: run `make upstream`")


@dataclass(frozen=True, slots=True)
class Upstream:
    """A running process and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text("utf-8", "replace")


@contextlib.contextmanager
def running(directory: Path, environment: Mapping[str, str], clusters: Sequence[tuple[str, str]]) -> Iterator[Upstream]:
    """v1.6 as it is deployed, for clusters `(namespace, name)`; `environment` as for an operator of ours.

    It has one port for its metrics, whatever it is told: another one on this machine is waited for.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "v1.6.log"
    with contextlib.ExitStack() as stack:
        proxy = urlsplit(environment["HTTP_PROXY"])
        assert proxy.hostname is not None
        assert proxy.port is not None
        fcntl.flock(stack.enter_context(BINARY.open("rb")), fcntl.LOCK_EX)
        etcd = stack.enter_context(_etcd(directory))
        lines = []
        for at, (host, port) in enumerate(each for cluster in clusters for each in _servers(*cluster)):
            address = f"127.16.{at // 250}.{at % 250 + 1}"
            stack.enter_context(_relay((address, port), host, (proxy.hostname, proxy.port), etcd))
            lines.append(f"{address} {host}\n")
        (directory / "hosts").write_text("".join(lines))
        flags = ["-cluster-scoped=true", "-tidb-discovery-image=pingcap/tidb-operator:v1.6.6", "-v=2"]
        environ = {"PATH": os.environ["PATH"], **{key: environment[key] for key in ("KUBECONFIG", "NAMESPACE")}}
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen([BINARY, *flags], cwd=directory, env=environ, stdout=output, stderr=output)
        try:
            yield Upstream(process, log)
        finally:
            process.terminate()
            process.wait()


def _servers(namespace: str, name: str) -> Iterator[tuple[str, int]]:
    """Whom v1.6 asks, and at which port."""
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
def _relay(at: tuple[str, int], host: str, proxy: tuple[str, int], etcd: tuple[str, int]) -> Iterator[None]:
    """Pass what is sent to an address on to a host, through the proxy, but for gRPC."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            is_grpc = self.request.recv(len(_HTTP2), socket.MSG_PEEK) == _HTTP2
            with contextlib.suppress(ConnectionError), socket.create_connection(etcd if is_grpc else proxy) as through:
                if is_grpc or _is_connected(through, f"{host}:{at[1]}"):
                    _splice(self.request, through)

    class Relay(ThreadingTCPServer):
        allow_reuse_address = True

    with Relay(at, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name=f"relay {host}")
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _is_connected(proxy: socket.socket, host: str) -> bool:
    """Ask a proxy for a connection; whether there is one now."""
    proxy.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        if not (byte := proxy.recv(1)):
            return False
        answer += byte
    return b" 200 " in answer.partition(b"\r\n")[0]


def _splice(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on both ways until one side ends."""
    with selectors.DefaultSelector() as ready:
        ready.register(one, selectors.EVENT_READ, other)
        ready.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in ready.select():
                assert isinstance(key.fileobj, socket.socket)
                piece = key.fileobj.recv(_PIECE)
                if not piece:
                    return
                key.data.sendall(piece)
