"""Serving stores: PD's view compared with the pods' containers (F13)."""

from dataclasses import replace
from typing import Any, cast

import pytest

from apis.shared import TiKVFailureStore
from dataplane.pd import Store
from kube.objects import Json, Object
from member.context import ReconcileContext
from member.stores.kind import TIFLASH_STORES as TIFLASH
from member.stores.kind import TIKV_STORES
from member.stores.reports import not_up
from ports.clock import FakeClock
from tests.kube.fakes import FakeApi
from tests.member.reconciling import as_object, context

STARTED = "2026-01-01T00:01:00Z"
STARTED_SECONDS = 1767225660


def store(ordinal: int, **fields: Any) -> Store:
    """The store of a pod, Up and started after its container, but for `fields`."""
    address = f"demo-tikv-{ordinal}.demo-tikv-peer.ns.svc:20160"
    known = Store(ordinal + 1, address, "Up", region_count=10, start_timestamp=STARTED_SECONDS + 3)
    return replace(known, **fields)


def pod(ordinal: int, *, running: bool = True, deleted: bool = False) -> Object:
    state: Json = {"running": {"startedAt": STARTED}} if running else {"waiting": {"reason": "CrashLoopBackOff"}}
    meta: Json = {"name": f"demo-tikv-{ordinal}", "namespace": "ns", "uid": f"uid-{ordinal}"}
    if deleted:
        meta["deletionTimestamp"] = STARTED
    return as_object(
        {"metadata": meta, "spec": {}, "status": {"containerStatuses": [{"name": "tikv", "state": state}]}}
    )


@pytest.fixture
def ctx() -> ReconcileContext:
    return context(FakeApi())


PODS = [pod(0), pod(1)]
RESTARTING = "store 2 (demo-tikv-1.demo-tikv-peer.ns.svc:20160) has not reported to PD since its restart"


@pytest.mark.rule("F13")
def test_a_store_counts_when_it_has_started_after_its_container(ctx: ReconcileContext) -> None:
    assert "" == not_up(ctx, TIKV_STORES, [store(0), store(1)], 1, PODS)
    assert "" == not_up(ctx, TIKV_STORES, [store(0), store(1, start_timestamp=STARTED_SECONDS)], 1, PODS)


@pytest.mark.rule("F13")
def test_a_store_that_pd_still_calls_up_from_before_its_restart_does_not_count(ctx: ReconcileContext) -> None:
    old = store(1, start_timestamp=STARTED_SECONDS - 60, last_heartbeat=(STARTED_SECONDS + 5) * 10**9)

    assert RESTARTING == not_up(ctx, TIKV_STORES, [store(0), old], 1, PODS)


@pytest.mark.parametrize("pods", [[pod(0)], [pod(0), pod(1, running=False)], [pod(0), pod(1, deleted=True)]])
@pytest.mark.rule("F13")
def test_a_store_whose_process_does_not_run_does_not_count(ctx: ReconcileContext, pods: list[Object]) -> None:
    assert RESTARTING == not_up(ctx, TIKV_STORES, [store(0), store(1)], 1, pods)


@pytest.mark.rule("F13")
def test_a_heartbeat_counts_where_pd_does_not_say_when_a_store_has_started(ctx: ReconcileContext) -> None:
    silent = store(1, start_timestamp=0, last_heartbeat=(STARTED_SECONDS - 1) * 10**9)
    heard = store(1, start_timestamp=0, last_heartbeat=(STARTED_SECONDS + 1) * 10**9)

    assert (RESTARTING, "") == (not_up(ctx, TIKV_STORES, [silent], 1, PODS), not_up(ctx, TIKV_STORES, [heard], 1, PODS))


@pytest.mark.rule("F13", "F44")
def test_a_store_that_pd_reports_up_beyond_its_silence_limit_counts_whatever_clocks_say(
    ctx: ReconcileContext,
) -> None:
    old = store(1, start_timestamp=STARTED_SECONDS - 3600)
    assert RESTARTING == not_up(ctx, TIKV_STORES, [old], 1, PODS)

    cast("FakeClock", ctx.deps.clock).step(31.0)

    assert "" == not_up(ctx, TIKV_STORES, [old], 1, PODS)


@pytest.mark.rule("F13", "F44")
def test_a_process_from_before_a_clock_was_put_back_is_not_taken_for_the_new_one(ctx: ReconcileContext) -> None:
    assert RESTARTING == not_up(ctx, TIKV_STORES, [store(1, start_timestamp=STARTED_SECONDS + 1800)], 1, PODS)


@pytest.mark.rule("F13")
def test_a_store_replaced_by_failover_counts_until_it_is_empty(ctx: ReconcileContext) -> None:
    ctx.status.tikv.failure_stores = {"2": TiKVFailureStore(pod_name="demo-tikv-1", store_id="2")}
    lost, empty = store(1, state_name="Down"), store(1, state_name="Down", region_count=0)
    where = "store 2 (demo-tikv-1.demo-tikv-peer.ns.svc:20160)"

    assert f"{where} is Down and still holds regions" == not_up(ctx, TIKV_STORES, [store(0), lost], 1, PODS)
    assert "" == not_up(ctx, TIKV_STORES, [store(0), empty], 1, PODS)
    # a PD that knows of no region at all proves nothing
    assert f"{where} is Down" == not_up(ctx, TIKV_STORES, [store(0, region_count=0), empty], 1, PODS)


@pytest.mark.rule("F13")
def test_for_tiflash_its_own_stores_count_alone(ctx: ReconcileContext) -> None:
    down = store(1, state_name="Down")
    address = "demo-tiflash-0.demo-tiflash-peer.ns.svc:3930"
    learner = store(2, address=address, labels={"engine": "tiflash"}, state_name="Disconnected")

    assert "" == not_up(ctx, TIFLASH, [store(0), down], 9, [])
    assert f"store 3 ({address}) is Disconnected and still holds regions" == not_up(
        ctx, TIFLASH, [down, learner], 9, []
    )
    assert "store 3" in not_up(ctx, TIKV_STORES, [store(0), learner], 1, PODS)


@pytest.mark.rule("F13")
def test_an_empty_tiflash_replaced_by_failover_does_not_count(ctx: ReconcileContext) -> None:
    ctx.status.tiflash.failure_stores = {"3": TiKVFailureStore(pod_name="demo-tiflash-0", store_id="3")}
    address = "demo-tiflash-0.demo-tiflash-peer.ns.svc:3930"
    lost = store(2, address=address, labels={"engine": "tiflash"}, state_name="Down", region_count=0)

    assert ("", "") == (
        not_up(ctx, TIFLASH, [store(0), lost], 9, []),
        not_up(ctx, TIKV_STORES, [store(0), lost], 1, PODS),
    )
