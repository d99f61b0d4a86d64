"""Desired objects are built once for each spec, and cached ones decoded once in a reconcile (docs/adr/0012)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from apis.component_statuses import TiDBFailureMember
from kube.objects import Json
from member.components import workload
from member.context import ReconcileContext
from member.memory import ClusterMemory
from tests.kube.fakes import FakeApi
from tests.member.reconciling import as_object, context

Change = Callable[[ReconcileContext], object]


class Built:
    """A builder that counts its calls, and the contexts of the reconciles of one cluster."""

    def __init__(self) -> None:
        self.count = 0
        self._memory = ClusterMemory()

    def next(self, change: Change = lambda _ctx: None) -> Json:
        """What a reconcile gets after a change."""
        ctx = context(FakeApi())
        ctx.memory = self._memory
        change(ctx)
        return ctx.designed_tree(("pd",), self._make)

    def _make(self) -> Json:
        self.count += 1
        return {"ports": [1]}


def test_a_desired_object_is_built_once_and_each_caller_may_change_its_own() -> None:
    built = Built()
    built.next()["ports"].append(2)
    assert ({"ports": [1]}, 1) == (built.next(), built.count)


@pytest.mark.parametrize(
    "change",
    [
        lambda ctx: setattr(ctx.tc, "spec", structs.replace(ctx.tc.spec, timezone="Asia/Shanghai")),
        lambda ctx: setattr(ctx.tc.metadata, "annotations", {"tidb.pingcap.com/pod-overlay": "{}"}),
        lambda ctx: setattr(ctx.tc.metadata, "labels", {"app.kubernetes.io/instance": "other"}),
        lambda ctx: setattr(ctx.tc.metadata, "counts_slots", True),
        lambda ctx: setattr(ctx.tc.metadata, "uid", "of a recreated cluster"),
    ],
    ids=["spec", "annotations", "labels", "slots", "uid"],
)
def test_it_is_built_again_from_another_spec(change: Change) -> None:
    built = Built()
    built.next()
    built.next(change)
    assert 2 == built.count


def test_another_number_of_replicas_by_failover_is_another_design() -> None:
    ctx, tidb = context(FakeApi()), workload("tidb")
    before = tidb.designed_stateful_set(ctx, "config")["spec"]["replicas"]
    ctx.status.tidb.failure_members = {"demo-tidb-0": TiDBFailureMember(pod_name="demo-tidb-0")}
    assert before + 1 == tidb.designed_stateful_set(ctx, "config")["spec"]["replicas"]


def test_two_results_from_the_same_spec_are_a_defect_under_rechecks() -> None:
    ctx, answers = context(FakeApi()), iter(({"a": 1}, {"a": 2}))
    ctx.deps = replace(ctx.deps, settings=replace(ctx.settings, rechecks=True))
    ctx.designed_tree(("pd",), lambda: next(answers))
    with pytest.raises(AssertionError, match="two different designs"):
        ctx.designed_tree(("pd",), lambda: next(answers))


def test_readers_of_a_cached_object_share_its_tree_and_a_change_by_one_is_a_defect_under_rechecks() -> None:
    ctx, cached = context(FakeApi()), as_object({"metadata": {"name": "demo-pd"}, "spec": {"replicas": 3}})
    assert ctx.tree(cached) is ctx.tree(cached)
    ctx.tree(cached)["spec"]["replicas"] = 0
    ctx.deps = replace(ctx.deps, settings=replace(ctx.settings, rechecks=True))
    with pytest.raises(AssertionError, match="a reader has changed"):
        ctx.tree(cached)
