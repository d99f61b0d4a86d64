"""No decision is repeated while no input has changed (design.md 3.8)."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest

from controllers.decisions import decide, seen_of
from controllers.executor import Executor
from controllers.stages import Stage, run_stages
from informers.listers import StoreLister
from informers.store import Store
from kube.objects import Object
from kube.reading import Lister, NotedLister, Readings
from kube.resources import PODS
from member.context import Held, ReconcileContext
from member.memory import LONGEST, ClusterMemory
from member.outcome import Done, Outcome, Waiting
from ports import effects
from ports.clock import FakeClock
from ports.effects import NotedClock
from tests.kube.fakes import FakeApi
from tests.member.reconciling import context

Act = Callable[[ReconcileContext, Lister], Outcome]
Change = Callable[[ReconcileContext], object]


def pod(version: str) -> Object:
    """A pod, as a cache holds it."""
    metadata = {"name": "demo-pd-0", "namespace": "ns", "uid": "uid-p", "resourceVersion": version}
    return Object(msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}))


def nothing(ctx: ReconcileContext, pods: Lister) -> Outcome:
    """A stage that finds a pod as it should be."""
    assert [pods.get("ns", "demo-pd-0")] == pods.list("ns")
    return Done("all is well")


class Reconciles:
    """Reconciles of one cluster, with one stage that counts how often it acts."""

    def __init__(self, act: Act = nothing, *, rechecks: bool = False) -> None:
        self.clock = FakeClock()
        self.cache = Store()
        self.cache.add(pod("1"))
        self.acted = 0
        self.defects: list[str] = []
        self._act = act
        self._rechecks = rechecks
        self._memory = ClusterMemory()

    def run(self, change: Change = lambda _ctx: None) -> dict[str, Outcome]:
        """One reconcile, after `change` to the observation; returns the outcomes."""
        ctx = context(FakeApi())
        ctx.memory, ctx.readings = self._memory, Readings()
        settings = replace(ctx.settings, rechecks=self._rechecks)
        ctx.deps = replace(ctx.deps, clock=NotedClock(self.clock), settings=settings)
        pods = NotedLister(StoreLister(self.cache, PODS), ctx.readings)
        change(ctx)

        def stage(ctx: ReconcileContext) -> Outcome:
            self.acted += 1
            return self._act(ctx, pods)

        executor = Executor(ctx.deps.applier, ctx.deps.recorder)
        steps = decide(ctx, lambda: [Stage("stage", stage)], lambda: seen_of(ctx))
        run_stages(steps, ctx, executor, lambda name, _: self.defects.append(name))
        return ctx.outcomes


@pytest.mark.rule("design-3.8")
def test_a_finished_stage_is_not_run_again_on_the_same_inputs() -> None:
    reconciles = Reconciles()
    answers = [reconciles.run() for _ in range(3)]
    assert [{"stage": Done("all is well")}] * 3 == answers
    assert 1 == reconciles.acted


@pytest.mark.parametrize(
    "change",
    [
        lambda ctx: setattr(ctx.tc.status.pd, "synced", True),
        lambda ctx: setattr(ctx.tc.status, "cluster_id", "42"),
        lambda ctx: ctx.observations.update(pd=Done("otherwise")),
        lambda ctx: ctx.observations.update(pd=Waiting("PDNotReady", "PD is not Ready")),
        lambda ctx: ctx.rolls_to_come.add("pd"),
        lambda ctx: setattr(ctx, "held", Held.REMAKING),
        lambda ctx: setattr(ctx, "removed", frozenset({"tidb"})),
    ],
    ids=["members", "cluster", "observation", "wait", "roll", "held", "removed"],
)
@pytest.mark.rule("design-3.8")
def test_a_different_observation_leads_to_a_new_decision(change: Change) -> None:
    reconciles = Reconciles()
    reconciles.run()
    reconciles.run(change)
    assert 2 == reconciles.acted


@pytest.mark.parametrize("change", ["updated", "same version anew", "deleted", "another one"])
@pytest.mark.rule("design-3.8")
def test_a_different_cache_answer_leads_to_a_new_decision(change: str) -> None:
    def counted(ctx: ReconcileContext, pods: Lister) -> Outcome:
        return Done(str(len(pods.list("ns"))))

    reconciles = Reconciles(counted)
    reconciles.run()
    match change:
        case "updated":
            reconciles.cache.update(pod("2"))
        case "same version anew":
            reconciles.cache.update(pod("1"))
        case "deleted":
            reconciles.cache.delete(pod("2"))
        case _:
            reconciles.cache.add(Object(pod("2").raw.replace(b"demo-pd-0", b"demo-pd-1")))
    reconciles.run()
    assert 2 == reconciles.acted


def asking(ctx: ReconcileContext, pods: Lister) -> Outcome:
    """A stage that sends a request."""
    effects.note()
    return Done()


def timing(ctx: ReconcileContext, pods: Lister) -> Outcome:
    """A stage whose answer may depend on the time."""
    return Done() if ctx.deps.clock.now() < LONGEST else Waiting("Late", "it is late")


def waiting(ctx: ReconcileContext, pods: Lister) -> Outcome:
    """A stage that is not done."""
    return Waiting("PodsNotReady", "not all pods are Ready")


def marking(ctx: ReconcileContext, pods: Lister) -> Outcome:
    """A stage that leaves something in the status."""
    ctx.status.pd.phase = "Upgrade"
    return Done()


@pytest.mark.parametrize("act", [asking, timing, waiting, marking])
@pytest.mark.rule("design-3.8")
def test_a_stage_with_an_effect_or_a_wait_runs_each_time(act: Act) -> None:
    reconciles = Reconciles(act)
    for _ in range(3):
        reconciles.run()
    assert 3 == reconciles.acted


@pytest.mark.rule("design-3.8")
def test_a_cache_change_during_the_stages_leads_to_a_new_decision() -> None:
    reconciles = Reconciles()

    def moving(ctx: ReconcileContext, pods: Lister) -> Outcome:
        pods.get("ns", "demo-pd-0")
        reconciles.cache.update(pod(str(reconciles.acted + 1)))
        pods.get("ns", "demo-pd-0")
        return Done()

    reconciles._act = moving
    reconciles.run()
    reconciles.run()
    assert 2 == reconciles.acted


@pytest.mark.rule("design-3.8")
def test_decides_everything_again_after_five_minutes() -> None:
    reconciles = Reconciles()
    reconciles.run()
    reconciles.clock.step(LONGEST - 1)
    reconciles.run()
    assert 1 == reconciles.acted
    reconciles.clock.step(1)
    reconciles.run()
    assert 2 == reconciles.acted


@pytest.mark.rule("design-3.8")
def test_a_different_result_on_the_same_inputs_is_a_defect_under_rechecks() -> None:
    forgotten: Iterator[Outcome] = iter([Done(), Done(), Waiting("Creating", "an input that nobody noted")])
    reconciles = Reconciles(lambda _ctx, _pods: next(forgotten), rechecks=True)
    reconciles.run()
    reconciles.run()
    assert [] == reconciles.defects
    reconciles.run()
    assert ["decisions"] == reconciles.defects
