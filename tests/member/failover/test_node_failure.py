"""The time for the successor of a pod on a lost machine (lifecycle.md 9.5)."""

from datetime import timedelta

import pytest

from apis.shared import TiKVFailureStore
from apis.times import stamp
from member.failover.node_failure import wait_for_replacement
from member.outcome import Waiting
from ports.clock import FakeClock
from tests.kube.fakes import FakeApi
from tests.member.reconciling import as_object, context


@pytest.mark.parametrize(("ahead", "is_found"), [(20.0, True), (-20.0, True), (40.0, False)])
@pytest.mark.rule("lifecycle-9.5", "F44")
def test_a_successor_is_found_though_the_clock_of_the_operator_is_ahead(ahead: float, is_found: bool) -> None:
    ctx = context(FakeApi())
    made = ctx.deps.clock.wall()
    pod = {"metadata": {"name": "demo-tikv-0", "uid": "after", "creationTimestamp": stamp(made)}}
    ctx.pods["tikv"] = [as_object(pod)]
    record = TiKVFailureStore(pod_name="demo-tikv-0", created_at=stamp(made + timedelta(seconds=ahead)), host_down=True)
    found = wait_for_replacement(ctx, "tikv", record)
    assert isinstance(found, Waiting)
    assert is_found == ("giving it 10 min" in found.message)


@pytest.mark.parametrize("jump", [timedelta(days=-1), timedelta(days=1)], ids=["back", "forward"])
@pytest.mark.rule("lifecycle-9.5", "F44")
def test_a_clock_that_jumps_neither_shortens_nor_prolongs_the_wait(jump: timedelta) -> None:
    ctx = context(FakeApi())
    clock = ctx.deps.clock
    assert isinstance(clock, FakeClock)
    now = stamp(clock.wall())
    ctx.pods["tikv"] = [as_object({"metadata": {"name": "demo-tikv-0", "uid": "after", "creationTimestamp": now}})]
    record = TiKVFailureStore(pod_name="demo-tikv-0", created_at=now, host_down=True)
    clock.jump(jump)
    found = wait_for_replacement(ctx, "tikv", record)
    assert isinstance(found, Waiting)
    assert 600.0 == found.retry_after
    clock.step(599.0)
    assert wait_for_replacement(ctx, "tikv", record)
    clock.step(1.0)
    assert None is wait_for_replacement(ctx, "tikv", record)
