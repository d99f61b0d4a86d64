"""The cost of clients without rights for the servers, each in a separate process (docs/security.md, servers)."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.processes import free_port
from tests.e2e import worlds
from tests.e2e.operators import ROOT, clean_environment
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place

pytestmark = pytest.mark.slow

_CLIENTS = 8
_LENGTH = 100_000_000
_PATIENCE = 30.0
_OF_THE_CHART = {"MALLOC_MMAP_THRESHOLD_": "1048576"}

_POD = b'{"Pod":{"metadata":{"name":"db-pd-0","namespace":"ns"}},'
_NODE = b'{"metadata":{"name":"n","labels":{"x":"' + b"y" * 25_000 + b'"}}}'
_TINY = b'{"metadata":{"name":"n"}}'


@dataclass(frozen=True, slots=True)
class Served:
    """A process that serves on a port."""

    pid: int
    port: int

    @property
    def peak(self) -> int:
        """The most bytes that it has ever had resident."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The sandbox from which the processes read pods and nodes."""
    with worlds.sandbox(tmp_path_factory.mktemp("clients")) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The world, and the threads that serve it, outlive each test."""


@contextlib.contextmanager
def _running(place: Place, log: Path, port: int, *command: str, **environ: str) -> Iterator[Served]:
    environment = clean_environment() | {"KUBECONFIG": str(place.admin)} | environ
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=environment, stderr=output)
    try:
        eventually(lambda: _listens(port), told=lambda: log.read_text("utf-8"))
        yield Served(process.pid, port)
        assert process.poll() is None, log.read_text("utf-8")
        assert "Traceback" not in log.read_text("utf-8")
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


@contextlib.contextmanager
def _extender(place: Place, directory: Path, *, metrics: bool) -> Iterator[Served]:
    port, health = free_port(), free_port()
    flags = (f"-port={port}", f"-metrics-addr=127.0.0.1:{health}")
    with _running(
        place, directory / "log", health if metrics else port, "scheduler", *flags, **_OF_THE_CHART
    ) as served:
        yield served


@contextlib.contextmanager
def _discovery(place: Place, directory: Path) -> Iterator[Served]:
    port = free_port()
    flags = (f"-port={port}", f"-proxy-port={free_port()}")
    environ = {"TC_NAME": "t", "MY_POD_NAMESPACE": "default"}
    with _running(place, directory / "log", port, "discovery", *flags, **environ) as served:
        yield served


def _filled(start: bytes, item: bytes, end: bytes) -> bytes:
    return start + b",".join([item] * (_LENGTH // (len(item) + 1))) + end


_BODIES: dict[str, Callable[[], bytes]] = {
    "no-json": lambda: b"x" * _LENGTH,
    "nodes": lambda: _filled(_POD + b'"Nodes":{"items":[', _NODE, b"]}}"),
    "tiny-nodes": lambda: _filled(_POD + b'"Nodes":{"items":[', _TINY, b"]}}"),
    "names": lambda: _filled(_POD + b'"NodeNames":[', b'""', b"]}"),
}


def _ask_all(port: int, body: bytes) -> list[int]:
    """The answers to eight clients that send the same at the same time; 0 for a closed connection."""
    with ThreadPoolExecutor(_CLIENTS) as clients:
        return list(clients.map(lambda _: _ask(port, body), range(_CLIENTS)))


def _ask(port: int, body: bytes) -> int:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as client:
            client.sendall(b"POST /scheduler/filter HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body))
            client.sendall(body)
            return int(client.recv(12)[9:12] or 0)
    except OSError:
        return 0


@pytest.mark.thorough
def test_eight_clients_with_100_MB_cost_the_extender_no_more_than_one(place: Place, tmp_path: Path) -> None:
    with _extender(place, tmp_path, metrics=False) as served:
        statuses: list[Sequence[int]] = [_ask_all(served.port, made()) for made in _BODIES.values()]
        peak = served.peak
        served_after = _ask(served.port, _POD + b'"NodeNames":["node-1"]}')
    # a hundred megabytes of nodes are read and sent back; manifests/scheduler allows 1 GiB
    assert peak < 600 << 20
    assert {0, 200, 400, 503} >= {status for each in statuses for status in each}
    assert served_after == 200


@pytest.mark.parametrize("kind", ["metrics", "discovery"])
def test_bodies_cost_other_servers_nothing(place: Place, tmp_path: Path, kind: str) -> None:
    starting = _discovery(place, tmp_path) if kind == "discovery" else _extender(place, tmp_path, metrics=True)
    with starting as served:
        before = served.peak
        assert {0, 413} >= set(_ask_all(served.port, b"x" * _LENGTH))
        assert served.peak < before + (16 << 20)
