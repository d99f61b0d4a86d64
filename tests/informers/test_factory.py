import threading

import pytest
from structlog.testing import capture_logs

from informers.factory import InformerNotStarted, SharedInformerFactory
from informers.list_watch import Selectors
from informers.threads import start_thread
from kube.resources import CONFIG_MAPS, NODES, PODS, Resource
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from ports.transport import Request, Response
from tests.informers.fake_source import FakeSource, pod, refusal
from tests.informers.support import DEADLINE, Recorder, eventually, pod_object


def factory_of(source: FakeSource, clock: FakeClock, **options: object) -> SharedInformerFactory:
    return SharedInformerFactory(source.client(), clock, SeededRandomness(1), **options)  # type: ignore[arg-type]  # named by the tests


@pytest.mark.rule("FAC-2")
def test_informer_and_lister_of_a_resource_share_one_informer(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a"))
    factory = factory_of(source, clock)
    stop = Stop()
    lister = factory.lister_for(PODS)
    assert factory.informer_for(PODS) is factory.informer_for(PODS)
    factory.start(stop)
    assert {PODS: True} == factory.wait_for_cache_sync(stop)
    assert ["ns/a"] == [obj.key for obj in lister.list("ns")]
    stop.set()
    assert factory.shutdown()


@pytest.mark.rule("FAC-2")
def test_resync_is_the_resources_own_or_the_default(clock: FakeClock) -> None:
    factory = factory_of(FakeSource(), clock, default_resync=30.0, resyncs={CONFIG_MAPS: 600.0})
    periods = [factory.informer_for(each).add_event_handler(Recorder()).turn.period for each in (PODS, CONFIG_MAPS)]
    assert [30.0, 600.0] == periods


@pytest.mark.rule("FAC-1")
def test_namespace_tweak_and_transform_reach_the_informers(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a", namespace="ns", color="red"))
    factory = factory_of(
        source,
        clock,
        namespace="ns",
        tweak=lambda selectors: selectors.and_labels("color=red"),
        transform=lambda obj: pod_object(f"{obj.metadata.name}-transformed"),
    )
    stop = Stop()
    lister = factory.lister_for(PODS)
    factory.start(stop)
    factory.wait_for_cache_sync(stop)
    stop.set()
    assert factory.shutdown()
    assert ["a-transformed"] == [obj.metadata.name for obj in lister.list()]
    assert {"/api/v1/namespaces/ns/pods"} == {request.path for request in source.requests}
    assert {"color=red"} == {request.params["labelSelector"] for request in source.requests}


@pytest.mark.rule("FAC-1")
def test_a_cluster_scoped_resource_is_not_limited_to_a_namespace(clock: FakeClock) -> None:
    source = FakeSource(NODES)
    factory = factory_of(source, clock, namespace="ns")
    stop = Stop()
    factory.informer_for(NODES)
    factory.start(stop)
    factory.wait_for_cache_sync(stop)
    stop.set()
    assert factory.shutdown()
    assert source.requests[0].path == "/api/v1/nodes"


@pytest.mark.rule("FAC-3")
def test_start_runs_new_informers_and_none_twice(clock: FakeClock) -> None:
    source = FakeSource()
    factory = factory_of(source, clock)
    stop = Stop()
    factory.start(stop)
    assert {} == factory.wait_for_cache_sync(stop), "FAC-4"
    factory.informer_for(PODS)
    factory.start(stop)
    factory.start(stop)
    factory.wait_for_cache_sync(stop)
    source.wait_for_open_watches()
    stop.set()
    assert factory.shutdown()
    assert (1, 1) == (source.count("LIST"), source.count("WATCH"))


@pytest.mark.rule("FAC-3")
def test_reading_an_informer_that_was_not_started_is_an_error(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a"))
    factory, stop = factory_of(source, clock), Stop()
    factory.start(stop)
    late = factory.lister_for(PODS)
    with pytest.raises(InformerNotStarted, match=r"pods was requested after the factory was started.*call start again"):
        late.get("ns", "a")
    with pytest.raises(InformerNotStarted):
        late.list()
    factory.start(stop)
    factory.wait_for_cache_sync(stop)
    assert ["ns/a"] == [obj.key for obj in late.list()]
    stop.set()
    assert factory.shutdown()


@pytest.mark.rule("FAC-3")
def test_nothing_starts_after_the_shutdown(clock: FakeClock) -> None:
    source = FakeSource()
    factory = factory_of(source, clock)
    factory.informer_for(PODS)
    assert factory.shutdown()
    factory.start(Stop())
    assert {} == factory.wait_for_cache_sync(Stop())
    assert [] == source.requests


@pytest.mark.rule("FAC-4")
def test_a_timed_out_wait_names_what_is_missing(clock: FakeClock) -> None:
    source = FakeSource()
    source.fail("LIST", refusal(403, "Forbidden"))
    factory = factory_of(source, clock)
    factory.informer_for(PODS)
    stop = Stop()
    factory.start(stop)
    answers: list[dict[Resource, bool]] = []
    waiter = start_thread("waiter", lambda: answers.append(factory.wait_for_cache_sync(stop, timeout=0.1)))
    # the informer, its reflector in its backoff, and the waiter
    clock.wait_for_waiters(3)
    clock.step(0.1)
    waiter.join(DEADLINE)
    assert [{PODS: False}] == answers
    assert [PODS] == factory.unsynced()
    stop.set()
    assert factory.shutdown()


@pytest.mark.rule("FAC-4")
def test_a_list_on_its_way_may_take_longer_than_the_wait(clock: FakeClock) -> None:
    arriving, rest = threading.Event(), threading.Event()

    class Slow(FakeSource):
        def request(self, request: Request) -> Response:
            assert request.receiver is not None
            whole = super().request(request)
            receive = request.receiver()
            receive(whole.body[:20])
            arriving.set()
            assert rest.wait(DEADLINE)
            receive(whole.body[20:])
            return Response(200, {}, b"")

    factory, stop, answers = factory_of(Slow(), clock), Stop(), list[dict[Resource, bool]]()
    factory.informer_for(PODS)
    factory.start(stop)
    assert arriving.wait(DEADLINE)
    waiter = start_thread("waiter", lambda: answers.append(factory.wait_for_cache_sync(stop, timeout=60)))
    with capture_logs() as logs:
        for _ in range(3):
            # the informer, and the waiter
            clock.wait_for_waiters(2)
            clock.step(60)
            eventually(lambda: any(entry["event"] == "caches are not synced yet" for entry in logs))
            logs.clear()
        rest.set()
        waiter.join(DEADLINE)

    assert [{PODS: True}] == answers
    stop.set()
    assert factory.shutdown()


@pytest.mark.rule("FAC-5")
def test_a_shutdown_has_a_deadline_and_can_be_repeated(clock: FakeClock) -> None:
    source = FakeSource()
    release = threading.Event()
    source.before_list(lambda: release.wait(DEADLINE))
    factory = factory_of(source, clock)
    factory.informer_for(PODS)
    stop = Stop()
    factory.start(stop)
    stop.set()
    assert not factory.shutdown(timeout=0.02)
    release.set()
    assert factory.shutdown()
    assert factory.shutdown()


@pytest.mark.rule("FAC-6")
def test_a_filtered_factory_sees_its_part_only(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a", managed="yes"))
    source.add(pod("b"))
    everything = factory_of(source, clock)
    managed = factory_of(source, clock, tweak=lambda selectors: selectors.and_labels("managed=yes"))
    listers = [factory.lister_for(PODS) for factory in (everything, managed)]
    stop = Stop()
    for factory in (everything, managed):
        factory.start(stop)
        factory.wait_for_cache_sync(stop)
    source.wait_for_open_watches(2)
    source.add(pod("c"))
    source.add(pod("d", managed="yes"))
    eventually(lambda: [4, 2] == [len(lister.list()) for lister in listers])
    stop.set()
    assert [True, True] == [factory.shutdown() for factory in (everything, managed)]


@pytest.mark.rule("FAC-7")
def test_a_tweak_appends_to_selectors_that_are_there() -> None:
    assert Selectors("a=b").and_labels("c=d") == Selectors("a=b,c=d")
    assert Selectors().and_labels("c=d") == Selectors("c=d")
