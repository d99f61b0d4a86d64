"""Runs many plans in parallel processes.

A world is prepared once for each starting point. Every plan runs in a copy of the process that holds it. A world has no
threads before its plan begins, so a copy is complete.
"""

import gc
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec

from ports.forks import Forks
from simulate.engine.engine import Engine
from simulate.engine.plan import Plan
from simulate.run import Outcome, prepare

Work = Callable[[Engine, Plan], Outcome]


class Broken(msgspec.Struct, frozen=True):
    """The report of a plan in which the simulator itself failed; `why` is the stack."""

    plan: Plan
    why: str


Report = Outcome | Broken

# msgspec omits only defaults that are the same object, so a plan from a pickle would get another key
_REPORTS = msgspec.json.Decoder(tuple[Outcome | None, Broken | None])


class ForkPool:
    """Runs at most `jobs` processes. For a process without threads."""

    def __init__(self, work: Work, jobs: int) -> None:
        self._work = work
        self._jobs = max(jobs, 1)
        self._worlds: dict[bytes, Engine] = {}

    def run(self, plans: Iterable[Plan]) -> Iterator[Report]:
        """The reports of the plans in the order of their ends. Raises NotReady."""
        begun: list[Plan] = []
        for number, found in Forks[bytes](self._jobs).each(self._works(plans, begun)):
            yield Broken(begun[number], str(found)) if isinstance(found, BaseException) else _decoded(found)

    def _works(self, plans: Iterable[Plan], begun: list[Plan]) -> Iterator[Callable[[], bytes]]:
        """The work of each plan, each drawn when its turn comes, and added to `begun`."""
        for plan in plans:
            begun.append(plan)
            yield partial(_report, self._work, self._world(plan), plan)

    def _world(self, plan: Plan) -> Engine:
        """The world at a plan's starting point, prepared on first use."""
        place = msgspec.json.encode([plan.world, plan.cluster, plan.neighbours, plan.joined, plan.rechecks])
        engine = self._worlds.get(place)
        if engine is None:
            engine = self._worlds[place] = prepare(plan)
            # objects that exist now must not be copied by a collection in a child
            gc.collect()
            gc.freeze()
        return engine


def _report(work: Work, engine: Engine, plan: Plan) -> bytes:
    try:
        return msgspec.json.encode((work(engine, plan), None))
    except BaseException:
        return msgspec.json.encode((None, Broken(plan, traceback.format_exc())))


def _decoded(report: bytes) -> Report:
    outcome, broken = _REPORTS.decode(report)
    found = outcome or broken
    assert found is not None
    return found
