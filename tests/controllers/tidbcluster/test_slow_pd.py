"""A PD that takes seconds for each answer: the requests of a reconcile, and the duration of a scale-in (R31)."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from controllers.controller import Result
from dataplane.clients import DataPlane
from member import api_clients
from ports.clock import FakeClock
from ports.transport import Request
from sandbox.apiserver.audit import Call
from tests.controllers.dmcluster.dm_world import DMWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample

MOST = {0.0: 10.0, 4.0: 120.0, 10.0: 280.0}
"""Seconds within which three stores leave, by the seconds that PD takes for an answer."""


class Writes:
    """The times of writes to StatefulSets."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.last = 0.0

    def __call__(self, call: Call) -> None:
        if call.resource == "statefulsets.apps" and call.request.method == "PATCH":
            self.last = self._clock.now()


def _three_leave(world: OperatorWorld, writes: Writes, answers_after: float) -> float:
    """The seconds until the StatefulSet of TiKV has three of six pods."""
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 6
    world.apply(cluster)
    world.run_until_ready()
    if answers_after:
        world.world.faults.network_slow(answers_after, "default/basic-pd-*")
        # it is known to be slow and not silent
        world.run(400.0)
    world.forget()
    began = world.clock.now()
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: world.replicas("tikv") == 3, 1500.0)
    return writes.last - began


def _slow_world(clock: FakeClock) -> tuple[OperatorWorld, Writes]:
    writes = Writes(clock)
    return OperatorWorld(clock=clock, faults=writes), writes


@pytest.mark.slow
@pytest.mark.parametrize(("answers_after", "most"), MOST.items())
@pytest.mark.rule("R31")
def test_three_stores_leave_soon_although_pd_answers_slowly(
    clock: FakeClock, answers_after: float, most: float
) -> None:
    world, writes = _slow_world(clock)
    assert most >= _three_leave(world, writes, answers_after)
    world.stop()


@pytest.mark.slow
@pytest.mark.planted
def test_detects_planted_stages_that_do_not_share_answers(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataPlane, "sharing", property(lambda self: self))
    world, writes = _slow_world(clock)
    assert MOST[4.0] < _three_leave(world, writes, 4.0)
    world.stop()


def _questions(world: OperatorWorld) -> list[Counter[str]]:
    """The reads from PD in each future reconcile, by request."""
    found: list[Counter[str]] = []
    requests = world.operator.dataplane.requests
    (controller,) = [each for each in world.operator.controllers if each.sync is world.operator.sync]

    def watched(sync: Callable[[str], Result | None]) -> Callable[[str], Result | None]:
        def run(key: str) -> Result | None:
            before = len(requests)
            try:
                return sync(key)
            finally:
                found.append(Counter(map(_question, filter(_is_pds, requests[before:]))))

        return run

    controller.sync = watched(controller.sync)
    return found


def _is_pds(request: Request) -> bool:
    return request.is_read and ":2379" in request.url


def _question(request: Request) -> str:
    return request.url.partition("//")[2]


@pytest.mark.slow
@pytest.mark.rule("R31")
def test_stages_share_answers_and_only_evidence_is_read_again(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 5
    world.apply(cluster)
    world.run_until_ready()
    world.run(60.0)
    asked = _questions(world)
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: world.replicas("tikv") == 3)
    world.run(60.0)

    twice = {question for of_one in asked for question, times in of_one.items() if times > 1}
    service = "basic-pd.default:2379/pd/api/v1"
    stores = f"{service}/stores?state=0&state=1&state=2"
    assert {stores} == twice
    # a removal reads the stores before its request, and after it, whether PD contradicts itself
    assert 3 == max(times for of_one in asked for times in of_one.values())
    assert [{f"{service}/members", f"{service}/health", stores}] == [set(asked[-1])]
    world.stop()


def _asked_aside(world: OperatorWorld, monkeypatch: pytest.MonkeyPatch, lookup: str) -> list[tuple[float, int]]:
    """The seconds and requests of each future search for a member beside the Service."""
    found: list[tuple[float, int]] = []
    honest, requests = getattr(api_clients, lookup), world.operator.dataplane.requests

    def timed(ctx: Any) -> Any:
        began, before = ctx.deps.clock.now(), len(requests)
        try:
            return honest(ctx)
        finally:
            found.append((ctx.deps.clock.now() - began, len(requests) - before))

    monkeypatch.setattr(api_clients, lookup, timed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "component", "lookup"),
    [(OperatorWorld, "pd", "responding_pd_member"), (DMWorld, "dm-master", "responding_dm_master")],
    ids=["PD", "DM"],
)
@pytest.mark.rule("R31")
def test_hanging_members_cost_the_time_of_two_requests(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: type[OperatorWorld], component: str, lookup: str
) -> None:
    world, is_dm = kind(clock=clock), kind is DMWorld
    cluster = sample("dm" if is_dm else "basic")
    name = cluster["metadata"]["name"]
    cluster["spec"]["master" if is_dm else "pd"]["replicas"] = 5
    world.apply(cluster)
    world.run_until_ready(name)
    aside = _asked_aside(world, monkeypatch, lookup)
    for ordinal in range(4):
        world.world.data_plane.hang(NAMESPACE, f"{name}-{component}-{ordinal}")
    world.run(30.0)
    assert aside
    # each gets one request within a second: the first alone, then the others in parallel
    assert 2.0 >= max(seconds for seconds, _ in aside)
    assert 7 >= max(requests for _, requests in aside)
    world.stop()


@pytest.mark.slow
@pytest.mark.rule("R31")
def test_asks_only_the_first_member_that_answers(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = 5
    world.apply(cluster)
    world.run_until_ready()
    aside = _asked_aside(world, monkeypatch, "responding_pd_member")
    for ordinal in (3, 4):
        world.world.data_plane.hang(NAMESPACE, f"basic-pd-{ordinal}")
    world.run_until(lambda: bool(aside), 120.0)
    # whether it votes, and which members there are
    assert {(0.0, 2)} == set(aside)
    world.stop()
