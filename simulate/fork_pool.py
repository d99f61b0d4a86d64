"""Runs many plans in parallel processes.

A world is prepared once for each starting point. Every plan runs in a fork of the process that holds it, which shares
its memory copy-on-write. A world has no threads before its plan begins, so a fork is a complete copy. Results return
through a pipe.
"""

import gc
import os
import selectors
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from simulate.engine.engine import Engine
from simulate.engine.plan import Plan
from simulate.run import Outcome, prepare

_CHUNK = 1 << 16

Work = Callable[[Engine, Plan], Outcome]


class Broken(msgspec.Struct, frozen=True):
    """Raised if the simulator itself failed; `why` is the stack."""

    plan: Plan
    why: str


Report = Outcome | Broken

_REPORTS = msgspec.json.Decoder(tuple[Outcome | None, Broken | None])


@dataclass(slots=True)
class _Child:
    pid: int
    pipe: int
    plan: Plan
    received: bytearray


class ForkPool:
    """Runs at most `jobs` processes. For a process without threads."""

    def __init__(self, work: Work, jobs: int) -> None:
        self._work = work
        self._jobs = max(jobs, 1)
        self._worlds: dict[bytes, Engine] = {}

    def run(self, plans: Iterable[Plan]) -> Iterator[Report]:
        """The reports of the plans in the order of their ends. Raises NotReady."""
        with selectors.DefaultSelector() as selector:
            for plan in plans:
                while len(selector.get_map()) >= self._jobs:
                    yield from self._collect(selector)
                child = self._start(plan)
                selector.register(child.pipe, selectors.EVENT_READ, child)
            while selector.get_map():
                yield from self._collect(selector)

    def _start(self, plan: Plan) -> _Child:
        engine = self._world(plan)
        reading, writing = os.pipe()
        # buffered output would be written twice
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _run_and_exit(self._work, engine, plan, writing)
        os.close(writing)
        return _Child(pid, reading, plan, bytearray())

    def _world(self, plan: Plan) -> Engine:
        """The world at a plan's starting point, prepared on first use."""
        place = msgspec.json.encode([plan.world, plan.cluster, plan.neighbours, plan.joined])
        engine = self._worlds.get(place)
        if engine is None:
            engine = self._worlds[place] = prepare(plan)
            # objects that exist now must not be copied by a collection in a child
            gc.collect()
            gc.freeze()
        return engine

    def _collect(self, selector: selectors.BaseSelector) -> Iterator[Report]:
        """Wait for the children; return the reports of those that have ended."""
        for key, _ in selector.select():
            child: _Child = key.data
            chunk = os.read(child.pipe, _CHUNK)
            child.received += chunk
            if chunk:
                continue
            selector.unregister(child.pipe)
            os.close(child.pipe)
            os.waitpid(child.pid, 0)
            yield _report(child)


def _run_and_exit(work: Work, engine: Engine, plan: Plan, pipe: int) -> None:
    """The whole life of a child."""
    try:
        try:
            found: Report = work(engine, plan)
        except BaseException:
            found = Broken(plan, traceback.format_exc())
        pair = (found, None) if isinstance(found, Outcome) else (None, found)
        with os.fdopen(pipe, "wb") as stream:
            stream.write(msgspec.json.encode(pair))
        sys.stdout.flush()
    finally:
        os._exit(0)


def _report(child: _Child) -> Report:
    try:
        outcome, broken = _REPORTS.decode(bytes(child.received))
    except msgspec.DecodeError as error:
        return Broken(child.plan, f"the process ended without a report: {error}")
    found = outcome or broken
    assert found is not None
    return found
