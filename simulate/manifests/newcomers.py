"""Manifests on the way of `make run`: each becomes a Ready cluster or gets a message, without an exception.

The same functions read, check, apply and show it; sandbox and operator run in one thread on their own clock.
"""

import io
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from typing import TypeVar

from rich.console import Console

from apis.crd import KINDS, definition
from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli import manifests, progress
from cli.documents import BadDocument
from cli.progress import LiveView, PlainView, blocked_by, is_ready, waits_for
from controllers.controller import Result, Sync
from controllers.errors import IgnoreError, RequeueError
from discovery.app import make_handler
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.operator import Operator
from rehearsal.world import DISCOVERY
from sandbox.world import World
from simulate.engine.logs import silence
from simulate.manifests.mutations import mutated

T = TypeVar("T")

DEFECT = "defect"

_GIVE_UP = 60.0
"""Seconds after which the reason of a wait becomes the message."""
_LONGEST_MESSAGE = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a seed: `outcome` is `ready`, `refused` or `waits`, otherwise `defect`, with the traceback in
    `told`.
    """

    seed: int
    outcome: str
    told: str = ""


class Defect(Exception):
    """Raised for an unexpected result."""


def judge_all(seeds: Iterable[int], jobs: int) -> Iterator[Verdict]:
    """The verdicts of seeds, in their order."""
    return in_parallel(judge, seeds, jobs)


def in_parallel(judge_one: Callable[[T], Verdict], cases: Iterable[T], jobs: int) -> Iterator[Verdict]:
    """The verdicts of cases in their order, from `jobs` processes."""
    with ProcessPoolExecutor(max(jobs, 1), mp_context=get_context("fork"), initializer=silence) as pool:
        yield from pool.map(judge_one, cases, chunksize=8)


def judge(seed: int) -> Verdict:
    """The verdict of one seed."""
    return judge_content(mutated(seed), seed)


def judge_content(content: bytes, seed: int = 1) -> Verdict:
    """The verdict of a file's content."""
    return verdict_of(seed, lambda: _try(content, seed))


def verdict_of(seed: int, attempt: Callable[[], tuple[str, str]]) -> Verdict:
    """The verdict of an attempt that returns outcome and message, or raises an exception that was not caught."""
    try:
        outcome, told = attempt()
        if not told.strip() or len(told) > _LONGEST_MESSAGE or "Traceback" in told:
            raise Defect(f"{outcome} with the message {told[:500]!r}")
    except Exception:
        return Verdict(seed, DEFECT, traceback.format_exc())
    return Verdict(seed, outcome, told)


def _try(content: bytes, seed: int) -> tuple[str, str]:
    """Outcome and message. Raises exceptions that were not caught."""
    try:
        documents = manifests.parse(content, "m.yaml")
        return NewcomerRun(seed).follow(documents)
    except (manifests.BadManifest, BadDocument) as error:
        return "refused", str(error)


class Raised:
    """The unexpected exceptions of an operator's syncs, with their stacks; the operator logs and survives them."""

    def __init__(self) -> None:
        self.stacks: list[str] = []

    def note(self, error: Exception) -> None:
        """Record an exception."""
        self.stacks.append("".join(traceback.format_exception(error)))

    def watched(self, sync: Sync) -> Sync:
        """A sync whose unexpected exceptions are recorded."""

        def watched(key: str) -> Result | None:
            try:
                return sync(key)
            except (RequeueError, IgnoreError):
                raise
            except Exception as error:
                self.note(error)
                raise

        return watched


class NewcomerRun:
    """One sandbox with an operator."""

    def __init__(self, seed: int, definitions: Sequence[Json] = ()) -> None:
        """`definitions` are the CRDs, by default the operator's."""
        self._clock = FakeClock()
        programs = {DISCOVERY: make_handler}
        self._world = World(self._clock, SeededRandomness(seed), programs=programs, crds=definitions or _definitions())
        self._raised = raised = Raised()
        self._operator = Operator(
            self._world, self._clock, seed, watched=raised.watched, on_defect=lambda _, error: raised.note(error)
        )
        self._views = (
            PlainView(Console(file=io.StringIO(), width=200)),
            LiveView(Console(file=io.StringIO(), width=200, force_terminal=True)),
        )

    def objects(self, resource: Resource) -> Sequence[Object]:
        """All objects of a kind."""
        return self._world.client().list_page(resource).items

    def follow(self, documents: list[manifests.Manifest], within: float = _GIVE_UP) -> tuple[str, str]:
        """Apply, and watch until all clusters are Ready, one cannot be, or the time is over. Raises BadManifest."""
        manifests.apply(self._world.client(), documents)
        wanted = {(document.namespace, document.name) for document in documents if document.kind == TIDB_CLUSTERS.kind}
        end = self._clock.now() + within
        while True:
            self._operator.work()
            if self._raised.stacks:
                raise Defect(self._raised.stacks[0])
            seen = [tc for tc in self._clusters() if (tc.metadata.namespace, tc.metadata.name) in wanted]
            for tc in seen:
                for view in self._views:
                    view.show(tc.metadata.name, progress.rows(tc))
                if blocked := blocked_by(tc):
                    return "refused", blocked
            if len(seen) == len(wanted) and all(map(is_ready, seen)):
                return "ready", "Ready"
            if self._clock.now() >= end:
                return "waits", "; ".join(map(waits_for, seen))
            self._operator.let_pass(end)

    def _clusters(self) -> list[TidbCluster]:
        return [decode(item.decode(), TidbCluster) for item in self._world.client().list_page(TIDB_CLUSTERS).items]


@cache
def _definitions() -> list[Json]:
    return [definition(kind) for kind in KINDS]
