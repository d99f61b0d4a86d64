"""The family *graceful*, and the judge's notice of evictions that stay or end too early, and of stops that hang."""

from collections.abc import Iterator

import pytest

import member.startscript.hooks
import member.tikv.desired
import member.tikv.rolling
from apis.graceful_stop import GRACEFUL_STOP
from apis.shared import TiKVStore
from apis.tidbcluster import TidbCluster
from kube.objects import Json, Object
from member.context import ReconcileContext
from member.observed.pods import pods_of
from member.stores.kind import TIKV_STORES
from member.stores.reports import store_of
from simulate.engine.plan import Crash, World
from simulate.families.generate import generated
from simulate.families.graceful_stops import FAMILY
from tests.simulate.planting import rules

_PLANS = list(FAMILY.plans())


def test_each_plan_has_one_name_and_annotates_its_cluster() -> None:
    for plan in _PLANS[::20]:
        assert plan == generated(plan.name)
        assert any(GRACEFUL_STOP in edit.annotations for edit in plan.edits)


def test_each_plan_meets_at_least_two_kinds_of_trouble() -> None:
    for plan in _PLANS:
        verbs = {fault.verb for fault in plan.faults if isinstance(fault, World)}
        silent, lost = verbs & {"network_cut", "pd_no_leader"}, verbs & {"host_gone", "zone_gone"}
        crashes = [fault for fault in plan.faults if isinstance(fault, Crash)]
        assert 2 <= sum(map(bool, (silent, lost, crashes)))


@pytest.mark.slow
@pytest.mark.planted
def test_reports_an_eviction_that_no_start_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = member.startscript.hooks.tikv_hooks

    def without_start(tc: TidbCluster) -> Json:
        return {name: hook for name, hook in honest(tc).items() if name != "postStart"}

    found = rules(
        generated("graceful/30"), lambda: monkeypatch.setattr(member.tikv.desired, "tikv_hooks", without_start)
    )
    assert {"I13", "fulfilled"} == found


def _all_stores(ctx: ReconcileContext) -> Iterator[tuple[Object, TiKVStore]]:
    """The pods with their stores, also those that stop."""
    for pod in pods_of(ctx, "tikv"):
        store = store_of(ctx, TIKV_STORES, pod.metadata.name)
        if store is not None:
            yield pod, store


@pytest.mark.slow
@pytest.mark.planted
def test_reports_an_eviction_that_ends_before_its_pod_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rules(
        generated("graceful/13"), lambda: monkeypatch.setattr(member.tikv.rolling, "_without_leaders", _all_stores)
    )
    assert "hook" in found


@pytest.mark.slow
@pytest.mark.planted
def test_reports_a_hook_that_holds_the_stop_of_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rules(
        generated("graceful/132"), lambda: monkeypatch.setattr(member.startscript.hooks, "_limit", lambda _: 10_000)
    )
    assert {"hook"} == found
