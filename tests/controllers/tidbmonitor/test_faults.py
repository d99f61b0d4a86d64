"""A monitor ends up the same after a crash at every write, lost answers and old views (design.md 3.6, F1, F3)."""

import json
from collections.abc import Callable, Iterator

import pytest

from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    INGRESSES,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_MONITORS,
    Resource,
)
from ports.clock import FakeClock
from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport
from rehearsal.operator import Operator
from sandbox.actor_system import NeverSettles
from tests.controllers.tidbmonitor.conftest import EVERYWHERE
from tests.controllers.tidbmonitor.monitors import CONTAINERS, Monitors, monitor
from tests.operator_world import NAMESPACE, OperatorWorld, sample

KINDS: tuple[Resource, ...] = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, SECRETS, ROLES, INGRESSES)
PROMETHEUS = CONTAINERS["prometheus"] | {"ingress": {"hosts": ["p.example.com"]}}
FULL = monitor(clusterScoped=True, shards=2, persistent=True, storage="1Gi", prometheus=PROMETHEUS)


@pytest.fixture(autouse=True)
def _no_stack_trace() -> None:
    """A status whose write was not answered is logged as a failure."""


class Crash(BaseException):
    """The process is gone."""


class Faulty:
    """The way of one process to the API server: its first write arrives, and it never hears of that."""

    def __init__(self, transport: Transport, fail: Callable[[Request], None], times: int) -> None:
        self._transport = transport
        self._fail = fail
        self._left = times

    def request(self, request: Request) -> Response:
        answer = self._transport.request(request)
        if not request.is_read and "/events" not in request.url and self._left:
            self._left -= 1
            self._fail(request)
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


def crash(_request: Request) -> None:
    raise Crash


def lose(request: Request) -> None:
    raise RequestTimeout(request.method, request.url, "no answer")


@pytest.fixture
def paused(clock: FakeClock) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock, settings=EVERYWHERE)
    body = sample("basic")
    made.apply(body | {"spec": body["spec"] | {"paused": True}})
    made.run(1.0)
    yield made
    made.stop()


def replace_operator(world: OperatorWorld, fail: Callable[[Request], None], times: int) -> None:
    """Another process, whose first writes fail so."""
    world.operator = Operator(
        world.world,
        world.clock,
        2,
        settings=EVERYWHERE,
        kubernetes=lambda transport: Faulty(transport, fail, times),
    )


def run_on(world: OperatorWorld, condition: Callable[[], bool]) -> int:
    """Run the world until a condition holds; return the number of processes that died, each after its first write."""
    deaths = 0
    while True:
        try:
            world.run_until(condition, 200.0)
        except Crash:
            deaths += 1
            assert deaths < 200, "it makes no progress"
            replace_operator(world, crash, 1)
        else:
            return deaths


def state(world: OperatorWorld) -> Json:
    """The objects of the monitor, without values that differ from run to run."""
    found: Json = {}
    for resource in KINDS:
        for each in world.every(resource):
            meta = each["metadata"]
            if "monitor" in str(meta.get("ownerReferences")).lower():
                content = {key: each.get(key) for key in ("data", "rules")}
                spec = each.get("spec") or {}
                content |= {key: spec.get(key) for key in ("replicas", "template", "ports", "selector", "rules")}
                found[f"{resource}/{meta['name']}"] = content
    return found


def life(world: OperatorWorld, run: Callable[[Callable[[], bool]], object]) -> list[Json]:
    """Create, change, delete; returns the objects after each step."""
    monitors, seen = Monitors(world), []

    def settled(name: str, there: bool) -> bool:
        return monitors.is_ready() and world.exists(STATEFUL_SETS, name) is there

    monitors.create(FULL)
    run(lambda: settled("basic-monitor-shard-1", there=True))
    seen.append(state(world))
    monitors.change(shards=1, grafana=None, clusterScoped=False, externalLabels={"a": "b"})
    run(lambda: settled("basic-monitor-shard-1", there=False) and not world.exists(SECRETS, "basic-monitor"))
    run(lambda: monitors.is_ready() and not cluster_roles(world))
    seen.append(state(world))
    world.admin.delete(TIDB_MONITORS, "basic", NAMESPACE)
    run(lambda: not world.exists(TIDB_MONITORS, "basic"))
    assert not cluster_roles(world)
    return seen


def cluster_roles(world: OperatorWorld) -> list[str]:
    there = [each.metadata.name for each in world.admin.list_page(CLUSTER_ROLES, "").items]
    return [name for name in there if name.endswith("-monitor")]


@pytest.fixture(scope="module")
def undisturbed() -> list[Json]:
    world = OperatorWorld(settings=EVERYWHERE)
    try:
        body = sample("basic")
        world.apply(body | {"spec": body["spec"] | {"paused": True}})
        world.run(1.0)
        return life(world, lambda condition: world.run_until(condition, 200.0))
    finally:
        world.stop()


@pytest.mark.slow
@pytest.mark.rule("F1")
def test_new_processes_continue_after_crashes_at_each_write(paused: OperatorWorld, undisturbed: list[Json]) -> None:
    deaths = 0

    def run(condition: Callable[[], bool]) -> None:
        nonlocal deaths
        deaths += run_on(paused, condition)

    replace_operator(paused, crash, 1)
    assert undisturbed == life(paused, run)
    assert deaths > 20


@pytest.mark.slow
@pytest.mark.rule("F1")
def test_writes_whose_answers_are_lost_are_not_repeated(paused: OperatorWorld, undisturbed: list[Json]) -> None:
    replace_operator(paused, lose, 1000)
    left = [10]

    def run(condition: Callable[[], bool]) -> None:
        while True:
            try:
                paused.run_until(condition, 100.0)
                return
            except NeverSettles:
                left[0] -= 1
                assert left[0], paused.progressing

    assert undisturbed == life(paused, run)


@pytest.mark.parametrize("resource", [STATEFUL_SETS, CONFIG_MAPS, SECRETS, SERVICES, TIDB_MONITORS], ids=str)
@pytest.mark.rule("F1")
def test_an_object_missing_from_the_cache_is_not_created_twice(
    paused: OperatorWorld, undisturbed: list[Json], resource: Resource
) -> None:
    monitors = Monitors(paused)
    paused.operator.work()
    cache = paused.operator.caches[resource]
    monitors.create(FULL)
    paused.run(0.5)
    cache.blind = True
    paused.run(20.0)
    cache.blind = False
    monitors.run_until_ready()
    assert undisturbed[0] == state(paused)


class Refusing:
    """The way of a process without the right to delete ClusterRoles, until it is granted."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.granted = False

    def request(self, request: Request) -> Response:
        if request.method == "DELETE" and "clusterrole" in request.url and not self.granted:
            refusal = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no right"}
            return Response(403, {}, json.dumps(refusal).encode())
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


def test_a_deleted_monitor_that_cannot_be_cleaned_up_reports_why_and_goes_when_it_can(paused: OperatorWorld) -> None:
    made: list[Refusing] = []

    def refusing(transport: Transport) -> Refusing:
        made.append(Refusing(transport))
        return made[-1]

    monitors = Monitors(paused)
    monitors.create(FULL)
    monitors.run_until_ready()
    paused.operator = Operator(paused.world, paused.clock, 2, settings=EVERYWHERE, kubernetes=refusing)
    paused.admin.delete(TIDB_MONITORS, "basic", NAMESPACE)
    paused.run(30.0)
    status, reason, message = monitors.condition()
    assert ("True", "CleanUpFailed", True) == (status, reason, message.endswith("no right"))
    before = paused.get(TIDB_MONITORS, "basic")
    paused.run(300.0)
    assert before == paused.get(TIDB_MONITORS, "basic")

    for each in made:
        each.granted = True
    paused.run_until(lambda: not paused.exists(TIDB_MONITORS, "basic"), 200.0)
    assert [] == cluster_roles(paused)
