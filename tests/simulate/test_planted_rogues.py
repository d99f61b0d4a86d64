"""The checks can fail: stages that do what no stage may are found out."""

from collections.abc import Callable

import pytest

import member.pd.desired
from controllers.stages import Stage
from controllers.tidbcluster import stages
from kube.resources import SERVICES, STATEFUL_SETS, TIDB_CLUSTERS
from member.context import ReconcileContext
from member.outcome import Outcome, Waiting
from simulate.engine.plan import Plan
from simulate.oracles import compare, reference
from tests.simulate.planting import broken, rogue, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def once(act: Callable[[ReconcileContext], bool]) -> Callable[[ReconcileContext], None]:
    """Do it in every round until it says that it is done."""
    done: list[bool] = []

    def until_done(ctx: ReconcileContext) -> None:
        if not done and act(ctx):
            done.append(True)

    return until_done


def in_a_roll(spec: dict[str, object]) -> Callable[[ReconcileContext], bool]:
    """Merge something into TiDB's StatefulSet while its pods are of two revisions."""

    def act(ctx: ReconcileContext) -> bool:
        live = ctx.listers.stateful_sets.get(ctx.namespace, "basic-tidb")
        status = live.decode()["status"] if live else {}
        if status.get("updatedReplicas") == status.get("replicas"):
            return False
        ctx.deps.client.patch(STATEFUL_SETS, "basic-tidb", ctx.namespace, {"spec": spec})
        return True

    return act


def strategy(partition: int) -> dict[str, object]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}


@pytest.mark.rule("I7")
def test_reports_a_changed_cluster_id(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(ctx: ReconcileContext) -> bool:
        ctx.status.cluster_id = "1"
        return True

    assert "I7" in rules(short("tidb-out"), rogue(forget, monkeypatch))


@pytest.mark.rule("I14")
def test_reports_a_partition_raised_during_a_roll(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = once(in_a_roll(strategy(5)))

    assert "I14" in rules(short("tidb-upgrade"), rogue(raised, monkeypatch))


@pytest.mark.rule("I19")
def test_reports_one_write_that_scales_and_rolls(monkeypatch: pytest.MonkeyPatch) -> None:
    both = once(in_a_roll({"replicas": 3, **strategy(0)}))

    assert "I19" in rules(short("tidb-upgrade"), rogue(both, monkeypatch))


@pytest.mark.rule("I21")
def test_reports_more_failure_records_than_the_limit_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(ctx: ReconcileContext) -> bool:
        records = {f"basic-tidb-{each}": {"podName": f"basic-tidb-{each}"} for each in range(4)}
        status = {"status": {"tidb": {"failureMembers": records}}}
        ctx.deps.client.patch(TIDB_CLUSTERS, "basic", ctx.namespace, status, subresource="status")
        return True

    assert "I21" in rules(short("tidb-out"), rogue(once(record), monkeypatch))


@pytest.mark.rule("O2")
def test_reports_an_object_created_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = short("tidb-out")
    honest = reference([broken(plan, lambda: None)])

    def remove(ctx: ReconcileContext) -> bool:
        service = ctx.listers.services.get(ctx.namespace, "basic-tidb")
        assert service is not None
        ctx.deps.client.delete(SERVICES, "basic-tidb", ctx.namespace)
        return True

    outcome = broken(plan, rogue(once(remove), monkeypatch))
    found = {violation.what.partition(":")[0] for violation in compare(outcome, honest) if violation.rule == "O2"}
    assert {"DELETE services basic-tidb", "POST services basic-tidb"} <= found


@pytest.mark.rule("O4")
def test_reports_tls_that_is_silently_off(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(name="tls", world="empty", cluster="tls", budget=60.0)
    assert "O4" not in rules(plan, lambda: None)

    assert "O4" in rules(plan, lambda: monkeypatch.setattr(member.pd.desired, "tls_enabled", lambda _: False))


@pytest.mark.rule("O10")
def test_reports_a_wait_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(_: ReconcileContext) -> Outcome:
        return Waiting("Thinking", "thinking")

    def plant() -> None:
        honest = stages.stages
        monkeypatch.setattr(stages, "stages", lambda: (*honest(), Stage("thinker", stage)))

    assert "O10" in rules(short("tidb-out"), plant)
