"""`python -m bench.walk`: the calls of a reconcile, and the stacks of its writes.

Counts calls of the operator's own functions by real reconciles in the simulator. A seed determines a run, so the
figures are the same on each machine and under any load, unlike times. The sandbox's calls are not counted.

`--record` writes the figures to `bench/walk.json`, which a test compares (tests/bench/test_walk.py), so that they
cannot grow unnoticed.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

from bench.figures import logs_to_stderr
from controllers.controller import Result, Sync
from kube.objects import Json
from ports.transport import ByteStream, Request, Response, Transport
from rehearsal.operator import SETTINGS, Operator
from tests.operator_world import OperatorWorld, sample

RECORD = Path(__file__).with_suffix(".json")

_ROOT = Path(__file__).resolve().parents[1]
_ROOMS = ("ports", "workqueue", "kube", "informers", "apis", "dataplane", "member", "meta", "controllers")
"""The packages of the operator."""
_CLOCK = "ports/clock.py"
"""Not counted, because its calls depend on how the simulator keeps time."""

_PATIENCE = 600.0
_SHOWN = 10
"""The number of files with the most calls that are printed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of the operator on the stack."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """`file:line`, for editors."""
        return f"{self.file}:{self.line} {self.function}"


@dataclass(frozen=True, slots=True)
class Write:
    """A write: its stack, and the calls of its reconcile until then."""

    method: str
    url: str
    stack: tuple[Frame, ...]
    calls: int

    @property
    def files(self) -> int:
        """The number of files in the stack."""
        return len({frame.file for frame in self.stack})

    @property
    def switches(self) -> int:
        """The number of changes between files in the stack."""
        return sum(one.file != other.file for one, other in pairwise(self.stack))


@dataclass(slots=True)
class Reconcile:
    """One reconcile of a key: its calls by file, and its writes."""

    key: str
    calls: Counter[str] = field(default_factory=Counter)
    writes: list[Write] = field(default_factory=list)


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures of a walk; without a write, the stack's are 0."""

    calls: int
    frames: int = 0
    files: int = 0
    switches: int = 0
    by_file: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class Walk:
    """One reconcile, up to a write if it is about one."""

    name: str
    reconcile: Reconcile
    write: Write | None = None

    @property
    def figures(self) -> Figures:
        """The figures to compare."""
        if self.write is None:
            by_file = dict(sorted(self.reconcile.calls.items()))
            return Figures(self.reconcile.calls.total(), by_file=by_file)
        return Figures(self.write.calls, len(self.write.stack), self.write.files, self.write.switches)


class Walker:
    """Counts the calls of the operator in its reconciles. Not thread-safe."""

    def __init__(self) -> None:
        self.reconciles: list[Reconcile] = []
        self._files: dict[CodeType, str] = {}
        self._current: Reconcile | None = None

    def watched(self, sync: Sync) -> Sync:
        """A sync with counted calls."""

        def counted(key: str) -> Result | None:
            self._current = Reconcile(key)
            self.reconciles.append(self._current)
            try:
                with _profiled(self._called):
                    return sync(key)
            finally:
                self._current = None

        return counted

    def noting(self, transport: Transport) -> Transport:
        """A transport that records writes, and below which nothing is counted."""
        return _NotingTransport(transport, self._note)

    def _note(self, request: Request) -> None:
        if self._current is not None and not request.is_read:
            stack = tuple(self._stack(sys._getframe(2)))
            write = Write(request.method, request.url, stack[::-1], self._current.calls.total())
            self._current.writes.append(write)

    def _stack(self, frame: FrameType | None) -> Iterator[Frame]:
        while frame is not None:
            if file := self._file(frame.f_code):
                yield Frame(file, frame.f_lineno, frame.f_code.co_qualname)
            frame = frame.f_back

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self._current is not None and (file := self._file(frame.f_code)):
            self._current.calls[file] += 1

    def _file(self, code: CodeType) -> str:
        """The path of the operator's code in the repository; empty for other code."""
        file = self._files.get(code)
        if file is None:
            path = Path(code.co_filename)
            inside = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path
            file = str(inside) if inside.parts[0] in _ROOMS and str(inside) != _CLOCK else ""
            self._files[code] = file
        return file


class _NotingTransport:
    """See `Walker.noting`."""

    def __init__(self, transport: Transport, note: Callable[[Request], None]) -> None:
        self._transport = transport
        self._note = note

    def request(self, request: Request) -> Response:
        with _profiled(None):
            self._note(request)
            return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


@contextmanager
def _profiled(profile: Callable[[FrameType, str, object], None] | None) -> Iterator[None]:
    """Profile with a function, or None, within the block."""
    before: Any = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


# The scenes


def at_rest() -> list[Walk]:
    """Reconciles of a 3/3/2 cluster without work, and one that waits in a rolling update."""
    walker, world = _world()
    synced(walker, world)
    kept = synced(walker, world)
    start(walker, world)
    deciding = synced(walker, world)
    world.change(version="v8.5.3")
    world.run(3.0)
    rolling = walker.reconciles[-1]
    world.stop()
    return [
        Walk("at rest", kept),
        Walk("at rest, the first of a process, which decides everything", deciding),
        Walk("in a roll, waiting for a pod", rolling),
    ]


def writing() -> list[Walk]:
    """TiKV is scaled out, then in."""
    walker, world = _world()
    out = _scaled(walker, world, 4, lambda write: write.method == "PATCH" and "/statefulsets/" in write.url)
    into = _scaled(walker, world, 3, lambda write: write.method == "DELETE" and "/store/" in write.url)
    world.stop()
    return [Walk("PATCH of a StatefulSet, TiKV 3 to 4", *out), Walk("DELETE of a store by PD, TiKV 4 to 3", *into)]


def _world() -> tuple[Walker, OperatorWorld]:
    """A Ready 3/3/2 cluster."""
    walker, world = Walker(), OperatorWorld()
    start(walker, world)
    world.apply(_cluster())
    world.run_until_ready()
    world.run(90.0)
    return walker, world


def start(walker: Walker, world: OperatorWorld) -> None:
    """Start a new operator process with counted reconciles, which trusts its earlier decisions as in production."""
    world.operator = Operator(
        world.world,
        world.clock,
        1,
        kubernetes=walker.noting,
        dataplane=walker.noting,
        watched=walker.watched,
        settings=replace(SETTINGS, rechecks=False),
    )


def _cluster() -> Json:
    tree = sample("basic")
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        tree["spec"][component]["replicas"] = replicas
    return tree


def synced(walker: Walker, world: OperatorWorld) -> Reconcile:
    """The one reconcile of the cluster that a resync triggers."""
    walker.reconciles.clear()
    world.operator.resync()
    world.operator.work()
    (only,) = walker.reconciles
    return only


def _scaled(
    walker: Walker, world: OperatorWorld, replicas: int, is_meant: Callable[[Write], bool]
) -> tuple[Reconcile, Write]:
    """Scale TiKV; return the first write that `is_meant` accepts, and its reconcile."""
    walker.reconciles.clear()
    world.change(tikv={"replicas": replicas})
    world.run_until(lambda: world.replicas("tikv") == replicas and world.reason() == "Done", _PATIENCE)
    return next((each, write) for each in walker.reconciles for write in each.writes if is_meant(write))


# The record


def recorded() -> Mapping[str, Figures]:
    """The recorded figures of each walk."""
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, Figures])


def grown(figures: Figures, before: Figures, tolerance: float) -> str:
    """The growth of a reconcile's calls beyond the tolerance, in a sentence with the files; empty if there is none."""
    if figures.calls <= before.calls * (1 + tolerance):
        return ""
    more = Counter(figures.by_file)
    more.subtract(before.by_file)
    files = ", ".join(f"{file} +{count}" for file, count in more.most_common(_SHOWN) if count > 0)
    return f"{figures.calls} calls where {before.calls} were recorded: {files}"


def _described(walk: Walk) -> Iterator[str]:
    """A walk in readable form."""
    yield f"\n{walk.name}"
    figures = walk.figures
    if walk.write is None:
        yield from (f"    {count:6} {file}" for file, count in walk.reconcile.calls.most_common(_SHOWN))
        yield f"  calls {figures.calls}"
        return
    yield f"  {walk.write.method} {walk.write.url}"
    yield from (f"    {frame}" for frame in walk.write.stack)
    yield f"  frames {figures.frames}, files {figures.files}, file switches {figures.switches}"
    yield f"  calls before the write {figures.calls}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the walks; with `--record`, record their figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    options = parser.parse_args(arguments)
    logs_to_stderr()
    walks = [*at_rest(), *writing()]
    for walk in walks:
        print("\n".join(_described(walk)))  # noqa: T201  (this is the output)
    if options.record:
        figures = {walk.name: walk.figures for walk in walks}
        RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
