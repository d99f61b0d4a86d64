"""The process put together, not started."""

import socket
import threading

import pytest
from pytest_mock import MockerFixture
from structlog.testing import capture_logs

from controller_manager.flags import parse
from controller_manager.manager import ControllerManager
from controller_manager.process_options import ProcessOptions
from controller_manager.tidb import tidb_controller_manager
from controllers.controller import Controller
from controllers.runtime import Runtime
from informers.factory import InformerNotStarted, SharedInformerFactory
from informers.handlers import ResourceEventHandlerFuncs
from kube.config import ClusterConfig
from kube.resources import CONFIG_MAPS, PODS
from ports.clock import FakeClock, SystemClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from tests.controller_manager.test_health import get
from tests.kube.servers import Peer, serving
from tests.workqueue.background import DEADLINE, in_background


def manager(clock: FakeClock, *argv: str, **environ: str) -> ControllerManager:
    config = ClusterConfig(server="http://127.0.0.1:9", source="test", namespace="of-the-context")
    return tidb_controller_manager(parse(argv, environ, "v0"), config, environ, clock, SeededRandomness(1))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({"NAMESPACE": "tidb-admin"}, "tidb-admin"), ({"NAMESPACE": ""}, "of-the-context"), ({}, "of-the-context")],
)
@pytest.mark.rule("3.1")
def test_the_namespace_is_the_environments_else_the_connections(
    clock: FakeClock, environ: dict[str, str], expected: str
) -> None:
    assert expected == manager(clock, **environ).lease_namespace


@pytest.mark.rule("5")
def test_metrics_include_the_process_itself(clock: FakeClock) -> None:
    made = manager(clock, "-metrics-addr=127.0.0.1:0")
    made.health.start()
    try:
        status, text = get(made.health, "/metrics")
    finally:
        made.health.stop()
    assert 200 == status
    for series in ("process_cpu_seconds_total", "python_info", "python_gc_collections_total"):
        assert series in text


@pytest.mark.rule("CW-1")
def test_putting_it_together_starts_and_sends_nothing(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connect)
    before = set(threading.enumerate())
    manager(clock, NAMESPACE="tidb-admin")
    assert set(threading.enumerate()) <= before


def test_requesting_an_informer_after_the_start_is_an_error() -> None:
    runtimes: list[Runtime] = []

    def build(runtime: Runtime) -> list[Controller]:
        runtimes.append(runtime)
        runtime.informers("color=red").lister_for(CONFIG_MAPS)
        return []

    config = ClusterConfig(server="http://127.0.0.1:9", source="test")
    options = ProcessOptions(name="painter", metrics_addr="127.0.0.1:0")
    made = ControllerManager(options, config, {}, SystemClock(), SeededRandomness(1), build=build)
    stop = Stop()
    stop.set()
    assert 0 == made.run(stop)
    (runtime,) = runtimes
    with pytest.raises(InformerNotStarted, match="'color=green' were requested after the start"):
        runtime.informers("color=green")
    late = runtime.informers("color=red").lister_for(PODS)
    with pytest.raises(InformerNotStarted, match="pods was requested after the factory was started"):
        late.list()


@pytest.mark.rule("TH-19")
def test_a_thread_that_dies_ends_the_process_in_order() -> None:
    """For any thread: a process that continues without it looks alive and does not work."""
    config = ClusterConfig(server="http://127.0.0.1:9", source="test")
    options = ProcessOptions(name="painter", metrics_addr="127.0.0.1:0")
    made = ControllerManager(options, config, {}, SystemClock(), SeededRandomness(1), build=lambda _runtime: [])
    stop = Stop()
    ended = in_background(lambda: made.run(stop))
    made.fail()

    assert 1 == ended.result(DEADLINE)
    assert stop.is_set()


@pytest.mark.rule("CW-10")
def test_a_server_with_a_long_retry_after_does_not_keep_the_process() -> None:
    asked, exits = threading.Event(), list[int]()

    def build(runtime: Runtime) -> list[Controller]:
        informers = runtime.informers("")
        assert isinstance(informers, SharedInformerFactory)
        informers.informer_for(CONFIG_MAPS)
        return []

    def answer(peer: Peer) -> None:
        while head := peer.head():
            peer.answer(429, b"", "Retry-After: 300")
            if "GET /api/v1/configmaps" in head:
                asked.set()

    with serving(answer) as server:
        config = ClusterConfig(server=server.url, source="test")
        options = ProcessOptions(name="painter", metrics_addr="127.0.0.1:0")
        made = ControllerManager(
            options, config, {}, SystemClock(), SeededRandomness(1), build=build, exit_now=exits.append
        )
        stop = Stop()
        ended = in_background(lambda: made.run(stop))
        assert asked.wait(DEADLINE)
        stop.set()
        assert (0, []) == (ended.result(DEADLINE), exits)


@pytest.mark.slow
@pytest.mark.rule("CW-10")
def test_a_handler_that_blocks_at_the_stop_does_not_keep_the_process(mocker: MockerFixture) -> None:
    mocker.patch("controller_manager.caches._HANDLERS_TIMEOUT", 2.0)
    blocked, free, exits = threading.Event(), threading.Event(), list[int]()

    def block(*_: object) -> None:
        blocked.set()
        assert free.wait(DEADLINE)

    def build(runtime: Runtime) -> list[Controller]:
        informers = runtime.informers("")
        assert isinstance(informers, SharedInformerFactory)
        informers.informer_for(CONFIG_MAPS).add_event_handler(ResourceEventHandlerFuncs(block), name="slow")
        return []

    def answer(peer: Peer) -> None:
        while head := peer.head():
            if "GET /api/v1/configmaps" in head and "watch=" not in head:
                items = b'[{"metadata":{"name":"a"}}]'
                peer.answer(200, b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":%s}' % items)
            else:
                peer.answer(403)

    with serving(answer) as server:
        config = ClusterConfig(server=server.url, source="test")
        options = ProcessOptions(name="painter", metrics_addr="127.0.0.1:0")
        made = ControllerManager(
            options, config, {}, SystemClock(), SeededRandomness(1), build=build, exit_now=exits.append
        )
        stop = Stop()
        ended = in_background(lambda: made.run(stop))
        assert blocked.wait(DEADLINE)
        with capture_logs() as logs:
            stop.set()
            ended.result(DEADLINE)
        free.set()

    assert [1] == exits
    (told,) = (entry for entry in logs if entry["log_level"] == "error" and "threads" in entry)
    assert ["handler-configmaps-slow"] == told["threads"]
