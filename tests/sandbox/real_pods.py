"""Pods of small programs as real processes, for tests."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kube.objects import Json
from kube.resources import PODS, SERVICES
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.transport import Request, Response, TransportError
from rehearsal.world import new_world
from sandbox.processes.agent_client import Unavailable
from sandbox.processes.keep import Keep
from sandbox.processes.machine import Machine
from sandbox.timings import Timings
from sandbox.world import World
from tests.controlplane.processes import BINARIES, missing_binaries
from tests.e2e.waiting import eventually

NAMESPACE = "default"

_TIMINGS = Timings(secret_refresh=0.1)

_WITHIN = 90.0
"""Seconds for any step: a busy machine needs many for a few processes."""

LIVES = "while true; do sleep 1; done"


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def machine_or_skip(binaries: Path, *, as_root: bool, keep: Path | None = None) -> Machine:
    if as_root and os.geteuid():
        pytest.skip("needs root; the same runs in a user namespace")
    try:
        return Machine(binaries, SystemClock(), keep=Keep(keep) if keep else None, as_root=as_root)
    except Unavailable as error:
        if os.environ.get("REQUIRE_EVERYTHING"):
            raise
        pytest.skip(str(error))


@contextmanager
def running(binaries: Path, *, as_root: bool, keep: Path | None = None) -> Iterator[World]:
    """A sandbox whose containers run the programs of a directory; `keep` keeps its content."""
    machine = machine_or_skip(binaries, as_root=as_root, keep=keep)
    world = new_world(SystemClock(), SystemRandomness(), _TIMINGS, machine=machine)
    world.start()
    try:
        yield world
    finally:
        world.stop()


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("binaries")
    # what a container of these tests runs is its argument
    program(directory, "tool", 'eval "$1"')
    return directory


@pytest.fixture
def world(binaries: Path) -> Iterator[World]:
    with running(binaries, as_root=os.geteuid() == 0) as world:
        yield world


AS_ROOT_AND_WITHOUT = pytest.mark.parametrize("as_root", [True, False], ids=["root", "user-namespace"])


def pod(name: str, script: str, *, container: Json | None = None, **more: object) -> Json:
    """`container` and `more` are further fields of the container's and the pod's spec."""
    program: Json = {"name": "tool", "image": "example.org/tool:1", "command": ["/tool", script]}
    program |= {"ports": [{"containerPort": 8000}], **(container or {})}
    meta = {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}
    spec = {"hostname": name, "subdomain": name, "containers": [program], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def run(world: World, tree: Json) -> str:
    """Create a pod under a headless Service of its name; return its UID."""
    name = tree["metadata"]["name"]
    spec: Json = {"clusterIP": "None", "selector": {"app": name}, "publishNotReadyAddresses": True}
    spec["ports"] = [{"port": 8000}]
    meta = {"name": name, "namespace": NAMESPACE}
    world.client().create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}, NAMESPACE)
    made = world.client().create(PODS, tree, NAMESPACE).decode()
    uid: str = made["metadata"]["uid"]
    return uid


def read(world: World, name: str) -> Json:
    found: Json = world.client().get(PODS, name, NAMESPACE).decode()
    return found


def container(world: World, name: str) -> Json:
    found: Json = read(world, name).get("status", {}).get("containerStatuses", [{}])[0]
    return found


def output(world: World, uid: str, *, previous: bool = False) -> str:
    found = world.kubelet.output(uid, "tool", previous)
    return "\n".join(line.text for line in found.after(0)) if found else ""


def said(world: World, uid: str, text: str) -> str:
    """The output of a container once it contains a text."""

    def printed() -> str:
        return found if text in (found := output(world, uid)) else ""

    return eventually(printed, _WITHIN, lambda: output(world, uid))


def answered(world: World, url: str) -> Response:
    def asked() -> Response | None:
        try:
            return world.data_plane_transport().request(Request("GET", url, timeout=3.0))
        except TransportError:
            return None

    found = eventually(asked)
    assert found is not None
    return found


def holds(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    eventually(condition, _WITHIN, what)


# a virtual environment may be in /tmp, which containers do not see
PYTHON = Path(sys.executable).resolve()

SERVES = f"exec {PYTHON} -m http.server 8000"


def leaves(how: str) -> Json:
    """A pod with a volume in memory whose process ignores SIGTERM; its command line contains `behind-HOW`."""
    volume = {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "300Ki"}}
    more = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    script = f"trap '' TERM INT; echo x >/data/x; {LIVES} # behind-"
    return pod("left", script + how, container=more, volumes=[volume])


def built(name: str) -> Path:
    """A program of `make controlplane`; skips where it is not built, and fails where everything is required."""
    if name in missing_binaries():
        assert not os.environ.get("REQUIRE_EVERYTHING"), f"{name} is missing"
        pytest.skip(f"needs {name}; run `make controlplane`")
    return (BINARIES / name).resolve()


def processes(marker: str) -> list[str]:
    """The command lines of this machine's processes that contain a text."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if marker in line:
                found.append(line)
    return found
