"""A stage that raises an unexpected exception fails alone (lifecycle.md 3.1)."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from controllers.stages import Stage
from controllers.tidbcluster import stages
from kube.resources import SERVICES
from member.context import ReconcileContext
from member.outcome import Outcome
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from tests.operator_world import OperatorWorld, sample

Run = Callable[[ReconcileContext], Outcome]

MESSAGE = "internal error: RuntimeError: out of luck; the stack trace is in the operator's log"


@pytest.fixture
def basic(clock: FakeClock) -> Iterator[OperatorWorld]:
    """The world with the sample `basic` in it, Ready; nothing is counted yet."""
    world = OperatorWorld(clock=clock)
    world.apply(sample("basic"))
    world.run_until_ready()
    world.forget()
    yield world
    world.stop()


def raising(error: Exception, asked: list[float] | None = None) -> Run:
    """A stage that notes when it runs, and then raises."""

    def stage(ctx: ReconcileContext) -> Outcome:
        if asked is not None:
            asked.append(ctx.deps.clock.now())
        raise error

    return stage


def break_stage(monkeypatch: pytest.MonkeyPatch, table: str, name: str, stage: Run) -> None:
    """Replace the stage of that name by another one."""
    broken = tuple(Stage(name, stage) if each.name == name else each for each in getattr(stages, table)())
    monkeypatch.setattr(stages, table, lambda: broken)


def update_errors(world: OperatorWorld, stage: str) -> float:
    labels = {"namespace": "default", "name": "basic", "component": stage}
    return world.operator.registry.get_sample_value("tidb_operator_cluster_update_errors", labels) or 0.0


@pytest.mark.rule("lifecycle-3.1")
def test_the_other_stages_run_and_the_status_names_the_one_that_raised(
    basic: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_stage(monkeypatch, "stages", "pd", raising(RuntimeError("out of luck")))
    basic.change(tidb={"replicas": 2, "service": {"labels": {"owner": "me"}}})
    with capture_logs() as logs:
        basic.run_until(lambda: basic.replicas("tidb") == 2)

    condition = basic.condition("Progressing")
    assert ("True", "InternalError", f"pd: {MESSAGE}") == tuple(
        condition[key] for key in ("status", "reason", "message")
    )
    assert "InternalError" == basic.cluster()["status"]["pd"]["conditions"][0]["reason"]
    assert "me" == basic.get(SERVICES, "basic-tidb")["metadata"]["labels"]["owner"]
    assert 1 <= update_errors(basic, "pd")
    assert 0 == update_errors(basic, "tidb")
    stacks = [entry for entry in logs if entry.get("exc_info")]
    assert {("stage raised an unexpected exception", "pd")} == {(each["event"], each["stage"]) for each in stacks}


@pytest.mark.slow
@pytest.mark.rule("R13")
def test_a_failed_stage_is_retried_with_growing_pauses(basic: OperatorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    break_stage(monkeypatch, "stages", "pd", raising(RuntimeError("out of luck"), asked))
    with capture_logs():
        basic.run_until(lambda: bool(asked))
        basic.run(16.0)
    pauses = [round(later - sooner, 3) for sooner, later in pairwise(asked)]
    assert [1.0, 2.0, 4.0, 8.0] == pauses


@pytest.mark.rule("F7")
def test_an_observation_that_raised_keeps_its_component_as_it_is(
    basic: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_stage(monkeypatch, "observations", "tidb", raising(RuntimeError("out of luck")))
    basic.change(tidb={"replicas": 2}, pd={"service": {"labels": {"owner": "me"}}})
    with capture_logs():
        basic.run(10.0)
    assert f"tidb: {MESSAGE}" == basic.condition("Progressing")["message"]
    assert "me" == basic.get(SERVICES, "basic-pd")["metadata"]["labels"]["owner"]
    assert 1 == basic.replicas("tidb")


@pytest.mark.slow
@pytest.mark.rule("LE-22")
def test_a_lease_that_has_run_out_ends_the_whole_reconcile(
    basic: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[float] = []
    break_stage(monkeypatch, "stages", "pd", raising(LeaseExpired("not the leader")))
    break_stage(monkeypatch, "stages", "pvc_cleaner", raising(RuntimeError(), later))
    with capture_logs(), pytest.raises(LeaseExpired):
        basic.operator.sync("default/basic")
    assert ([], []) == (later, basic.writes())
