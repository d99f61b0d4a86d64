"""The programs of a maintainer's directory, and a sandbox with the operator in front of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from rehearsal.world import new_world
from sandbox.processes.keep import Keep
from sandbox.processes.machine import Machine
from tests.e2e import operators
from tests.real.clusters import Place

FLAGS = (
    *operators.QUICK_LEASE,
    *(f"--{component}-failover-period=20s" for component in ("pd", "tikv", "tidb")),
)

Start = Callable[..., AbstractContextManager[Place]]
"""Starts a sandbox with an operator; `keep` is a directory that keeps its content."""


@pytest.fixture(scope="session")
def binaries() -> Path:
    directory = os.environ.get("BINARIES")
    if not directory:
        pytest.skip("BINARIES is not set: make test-real BINARIES=DIR")
    return Path(directory)


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest, binaries: Path) -> None:
    """Skip a test with the names of the programs that the directory lacks."""
    mark = request.node.get_closest_marker("needs")
    names = {path.name for pattern in ("*", "*/v*/*", "*/v*/*/*") for path in binaries.glob(pattern)}
    missing = [name for name in (mark.args if mark else ()) if name not in names]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}, which {binaries} lacks")


@pytest.fixture
def start(binaries: Path, tmp_path: Path) -> Start:
    @contextmanager
    def started(keep: Path | None = None) -> Iterator[Place]:
        machine = Machine(binaries, SystemClock(), keep=Keep(keep) if keep else None)
        world = new_world(SystemClock(), SystemRandomness(), machine=machine)
        with ExitStack() as stack:
            stack.callback(world.stop)
            world.start()
            kubeconfig = world.write_kubeconfig(tmp_path)
            _, proxy = world.serve_http()
            environment = operators.reaching(kubeconfig, proxy, HELM_RELEASE="real")
            log = tmp_path / "operator.log"
            stack.enter_context(operators.running(log, environment, *FLAGS, program=operators.PROGRAM))
            yield Place(world, tmp_path)

    return started


@pytest.fixture
def place(start: Start) -> Iterator[Place]:
    with start() as place:
        yield place
