"""The requests of a leader that was stopped beyond its lease arrive after the next leader has done the work. Like
`test_split_brain.py`, but in one thread and on a stepped clock, at every single write of a scale-in."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from controllers.status_pacing import DETAILS
from ports.transport import ByteStream, Request, Response, Transport
from rehearsal.operator import Operator
from simulate.engine.calls import Call, Port, call
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

_REFUSALS = {404, 409}
_SEEDS = itertools.count(10)


class _Stopped(BaseException):
    """The process does not run from here on; nothing of it may catch this."""


@dataclass(slots=True)
class _Leader:
    """Stops at its write number `at`; 0 is never. What it was about to send is `held`."""

    at: int = 0
    held: tuple[Call, Transport] | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, asked: Call, transport: Transport) -> Response:
        if self.held or (self.at and asked.counts and next(self.numbers) == self.at):
            self.held = self.held or (asked, transport)
            raise _Stopped
        return transport.request(asked.request)


@dataclass(frozen=True, slots=True)
class _Wire:
    port: Port
    transport: Transport
    leader: _Leader

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        return self.leader.send(call("", 0, self.port, request), self.transport)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`; no test opens one."""
        return self.transport.stream(request, idle_timeout)


class _Scene:
    """A cluster of four PDs and four TiKVs."""

    def __init__(self, world: OperatorWorld) -> None:
        self.world = world
        tree = sample("basic")
        for component, count in (("pd", 4), ("tikv", 4), ("tidb", 1)):
            tree["spec"][component]["replicas"] = count
        world.apply(tree)
        self.settle(4)

    def lead(self, leader: _Leader | None = None) -> None:
        """Let a new process lead."""
        leader = leader or _Leader()

        def through(port: Port) -> Callable[[Transport], _Wire]:
            return lambda transport: _Wire(port, transport, leader)

        world = self.world
        world.operator = Operator(
            world.world,
            world.clock,
            next(_SEEDS),
            kubernetes=through(Port.KUBERNETES),
            dataplane=through(Port.DATA_PLANE),
        )

    def ask_for(self, count: int) -> None:
        self.world.change(pd={"replicas": count}, tikv={"replicas": count})

    def settle(self, count: int) -> None:
        """Let the leader work until this many pods exist, and some more."""
        world = self.world

        def settled() -> bool:
            if not (world.is_ready() and world.reason() == "Done"):
                return False
            return {count} == {world.replicas(component) for component in ("pd", "tikv")}

        world.run_until(settled, 120.0)
        # the last detail of the status may wait that long
        world.run(DETAILS.first + 1.0)

    def stopped_at(self, number: int) -> tuple[Call, Transport] | None:
        """Begin to scale in; returns the leader's unsent requests when it was stopped; None if it makes no such
        write."""
        leader = _Leader()
        self.lead(leader)
        self.world.run(3.0)
        leader.at = number
        self.ask_for(3)
        try:
            self.settle(3)
        except _Stopped:
            return leader.held
        return None

    def quorum(self) -> tuple[set[str], dict[int, str]]:
        """PD's members, and the states of the stores that are left."""
        pd = self.world.world.data_plane.pd_cluster(NAMESPACE, "basic")
        assert pd is not None
        stores = {each.id: each.node_state.name for each in pd.stores.all() if each.node_state.name != "REMOVED"}
        return {member.name for member in pd.members.values() if member.healthy}, stores


@pytest.fixture
def scene() -> Iterator[_Scene]:
    world = OperatorWorld()
    yield _Scene(world)
    world.stop()


def _says(world: OperatorWorld, told: str) -> bool:
    return told in world.progressing


def _is_destructive(asked: Call) -> bool:
    return asked.port is Port.DATA_PLANE and asked.method == "DELETE" and "/schedulers/" not in asked.path


@pytest.mark.thorough
@pytest.mark.rule("LE-22")
def test_late_requests_of_a_scale_in_are_refused_or_have_no_effect(scene: _Scene) -> None:
    arrived: list[tuple[Call, int]] = []
    for number in itertools.count(1):
        held = scene.stopped_at(number)
        if held is None:
            break
        scene.lead()
        scene.settle(3)
        before = scene.quorum()
        asked, transport = held
        arrived.append((asked, transport.request(asked.request).status))
        assert before == scene.quorum(), asked
        scene.ask_for(4)
        scene.settle(4)

    writes = [each for each in arrived if each[0].port is Port.KUBERNETES]
    destructive = [(asked.path, status) for asked, status in arrived if _is_destructive(asked)]
    print(f"{len(arrived)} pauses: {len(writes)} writes refused, {len(destructive)} removals done already")  # noqa: T201
    assert [] == [(str(asked), status) for asked, status in writes if status not in _REFUSALS]
    assert 2 == len(destructive)


@pytest.mark.rule("LE-22")
def test_a_removal_cancelled_meanwhile_is_reported_and_hurts_no_quorum(scene: _Scene) -> None:
    """PD has no preconditions: a request under way takes effect, once the other members can do without this one."""
    unjustified: list[str] = []
    for number in itertools.count(1):
        held = scene.stopped_at(number) if len(unjustified) < 2 else None
        if held is None:
            break
        scene.ask_for(4)
        scene.lead()
        scene.settle(4)
        asked, transport = held
        if not _is_destructive(asked):
            continue
        assert 200 == transport.request(asked.request).status
        scene.world.run(60.0)
        members, stores = scene.quorum()
        of_pd = "/members/" in asked.path
        assert (3, 4) == ((len(members), len(stores)) if of_pd else (len(stores), len(members)))
        scene.world.run_until(partial(_says, scene.world, "was removed from PD"))
        unjustified.append("member" if of_pd else "store")
        scene.ask_for(3)
        scene.settle(3)
        scene.ask_for(4)
        scene.settle(4)
    print(f"removals that the next leader would not have made: {unjustified}")  # noqa: T201
    assert ["member", "store"] == unjustified
