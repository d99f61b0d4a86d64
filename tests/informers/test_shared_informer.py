"""The informer with its threads, in front of a fake API server."""

import threading

import pytest

from informers.handlers import ResourceEventHandlerFuncs
from informers.reflector import Reflector
from informers.shared_informer import InformerStarted, InformerStopped, SharedInformer
from informers.threads import start_thread
from kube.objects import Json, Object
from ports.clock import FakeClock
from ports.stopping import Stop
from tests.informers.fake_source import FakeSource, pod, refusal
from tests.informers.support import DEADLINE, Recorder, eventually, informer_of, pod_object, running, starting


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def informer(source: FakeSource, clock: FakeClock) -> SharedInformer:
    return informer_of(source, clock)


@pytest.mark.rule("INF-1", "INF-2")
def test_an_informer_runs_once(informer: SharedInformer) -> None:
    with running(informer):
        informer.run(Stop())
        assert not informer.is_stopped()
    assert informer.is_stopped()
    informer.run(Stop())
    assert informer.is_stopped()


@pytest.mark.rule("INF-3", "INF-42")
def test_synced_means_that_the_store_has_the_list(source: FakeSource, informer: SharedInformer) -> None:
    source.add(pod("a"))
    assert informer.last_sync_resource_version() == ""
    with running(informer):
        assert ["ns/a"] == informer.store.list_keys()
        assert informer.last_sync_resource_version() == "11"
        assert informer.store.last_resource_version == "11"


@pytest.mark.rule("INF-4")
def test_a_stop_ends_an_informer_that_never_synced(
    source: FakeSource, informer: SharedInformer, clock: FakeClock
) -> None:
    source.fail("LIST", refusal(403, "Forbidden"))
    with starting(informer):
        source.wait_for("LIST", 1)
    assert not informer.has_synced()


@pytest.mark.rule("INF-4")
def test_handlers_receive_nothing_after_the_stop(source: FakeSource, informer: SharedInformer) -> None:
    release, entered = threading.Event(), threading.Event()
    told: list[str] = []

    def on_add(obj: Object) -> None:
        told.append(obj.metadata.name)
        entered.set()
        release.wait(DEADLINE)

    source.add(pod("a"))
    source.add(pod("b"))
    informer.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
    with running(informer) as stop:
        assert entered.wait(DEADLINE)
        stop.set()
        release.set()
    assert ["a"] == told


@pytest.mark.rule("INF-5")
def test_an_informer_that_never_ran_can_be_left_alone(informer: SharedInformer) -> None:
    informer.remove_event_handler(informer.add_event_handler(Recorder()))
    assert not informer.is_stopped()


@pytest.mark.rule("INF-10")
def test_a_handler_registered_twice_receives_everything_twice(source: FakeSource, informer: SharedInformer) -> None:
    recorder = Recorder()
    first, second = informer.add_event_handler(recorder), informer.add_event_handler(recorder)
    assert first.name != second.name
    source.add(pod("a"))
    with running(informer):
        assert ["add a@11", "add a@11"] == recorder.wait_for(2)
        informer.remove_event_handler(first)
        source.modify(pod("a"))
        assert ["update a@11 a@12"] == recorder.wait_for(3)[2:]
        eventually(lambda: second.pending() == 0)
    assert len(recorder.told) == 3


@pytest.mark.rule("INF-11")
def test_a_late_handler_gets_stored_objects_and_later_changes(source: FakeSource, informer: SharedInformer) -> None:
    source.add(pod("a"))
    with running(informer):
        recorder = Recorder()
        registration = informer.add_event_handler(recorder)
        source.add(pod("b"))
        assert ["add a@11", "add b@12"] == recorder.wait_for(2)
        assert [True, False] == recorder.initial
        eventually(registration.has_synced)


@pytest.mark.rule("INF-12")
def test_a_stopped_informer_takes_no_handlers_and_no_indexers(informer: SharedInformer) -> None:
    with running(informer):
        pass
    with pytest.raises(InformerStopped, match=r"was not added to shared informer because it has stopped already$"):
        informer.add_event_handler(Recorder())
    with pytest.raises(InformerStopped, match="shape"):
        informer.add_indexers({"shape": lambda _: []})


@pytest.mark.rule("INF-13")
def test_handlers_sync_also_when_there_is_nothing(informer: SharedInformer) -> None:
    registration = informer.add_event_handler(Recorder())
    assert not registration.has_synced()
    with running(informer):
        eventually(registration.has_synced)
        late = informer.add_event_handler(Recorder())
        eventually(late.has_synced)


@pytest.mark.rule("INF-14")
def test_a_blocked_handler_delays_no_other(source: FakeSource, informer: SharedInformer) -> None:
    release = threading.Event()

    def block(_: Object) -> None:
        release.wait(DEADLINE)

    informer.add_event_handler(ResourceEventHandlerFuncs(on_add=block))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    source.add(pod("a"))
    with running(informer):
        for _ in range(10):
            source.modify(pod("a"))
        assert recorder.wait_for(11)[-1] == "update a@20 a@21"
        stored = informer.store.get_by_key("ns/a")
        release.set()
    assert stored is not None
    assert stored.metadata.resource_version == "21"


@pytest.mark.rule("INF-15", "FIFO-22")
def test_the_store_shows_what_a_handler_receives(source: FakeSource, informer: SharedInformer) -> None:
    seen: list[tuple[str, list[str]]] = []

    def look(obj: Object) -> None:
        seen.append((obj.metadata.name, sorted(informer.store.list_keys())))

    informer.add_event_handler(ResourceEventHandlerFuncs(on_add=look))
    source.add(pod("a"))
    source.add(pod("b"))
    with running(informer):
        eventually(lambda: len(seen) == 2)
    assert [("a", ["ns/a", "ns/b"]), ("b", ["ns/a", "ns/b"])] == seen


@pytest.mark.rule("INF-16")
def test_a_failing_handler_affects_no_other(source: FakeSource, informer: SharedInformer) -> None:
    def fail(_: Object) -> None:
        raise RuntimeError("no")

    failing = informer.add_event_handler(ResourceEventHandlerFuncs(on_add=fail))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    source.add(pod("a"))
    with running(informer):
        recorder.wait_for(1)
        eventually(lambda: failing.pending() == 1)


@pytest.mark.rule("INF-19")
def test_removing_is_idempotent_and_only_for_ones_own(
    source: FakeSource, informer: SharedInformer, clock: FakeClock
) -> None:
    recorder = Recorder()
    foreign = informer_of(source, clock).add_event_handler(Recorder())
    with running(informer):
        registration = informer.add_event_handler(recorder)
        informer.remove_event_handler(foreign)
        for _ in range(2):
            informer.remove_event_handler(registration)
        other = Recorder()
        informer.add_event_handler(other)
        source.add(pod("a"))
        other.wait_for(1)
    informer.remove_event_handler(registration)
    assert [] == recorder.told
    with pytest.raises(TypeError, match="not a registration"):
        informer.remove_event_handler(recorder)  # type: ignore[arg-type]  # what the test is about


@pytest.mark.rule("INF-23")
def test_a_missed_deletion_arrives_as_a_tombstone(
    source: FakeSource, informer: SharedInformer, clock: FakeClock
) -> None:
    recorder = Recorder()
    informer.add_event_handler(recorder)
    for name in ("a", "b", "c"):
        source.add(pod(name))
    with running(informer):
        source.wait_for_open_watches()
        source.delete("ns/a")
        source.delete_drop_watch("ns/b")
        recorder.wait_for(4)
        _relist(source, clock)
        assert ["delete a@14", "tombstone b@12", "update c@13 c@13"] == recorder.wait_for(6)[3:]
        assert [True, True, True] == recorder.initial


def _relist(source: FakeSource, clock: FakeClock) -> None:
    """End the watch in a way that leads to a list, and wait until that list is followed by a watch."""
    lists = source.count("LIST")
    source.wait_for_open_watches()
    source.send_error(410, "Expired")
    # delivery thread, handler thread(s) and the reflector wait; the latter with a deadline
    eventually(lambda: _stepped(clock) and source.count("LIST") > lists)
    source.wait_for_open_watches()


def _stepped(clock: FakeClock) -> bool:
    clock.step(2)
    return True


@pytest.mark.rule("KEY-6", "INF-24")
def test_a_recreation_may_be_seen_as_an_update_with_another_uid(
    source: FakeSource, informer: SharedInformer, clock: FakeClock
) -> None:
    uids: list[tuple[str, str]] = []
    informer.add_event_handler(
        ResourceEventHandlerFuncs(on_update=lambda old, new: uids.append((old.metadata.uid, new.metadata.uid)))
    )
    source.add(pod("a"))
    with running(informer):
        source.delete_drop_watch("ns/a")
        source.add_drop_watch(_with_uid(pod("a"), "another"))
        _relist(source, clock)
        eventually(lambda: len(uids) == 1)
    assert [("uid-a", "another")] == uids


def _with_uid(tree: Json, uid: str) -> Json:
    return tree | {"metadata": tree["metadata"] | {"uid": uid}}


@pytest.mark.rule("INF-25", "INF-29")
def test_a_relist_sends_only_changes_to_handlers_that_are_not_due(source: FakeSource, clock: FakeClock) -> None:
    informer = informer_of(source, clock, resync=3600)
    without, due = Recorder(), Recorder()
    first = informer.add_event_handler(without, resync_period=0)
    second = informer.add_event_handler(due)
    source.add(pod("same"))
    source.add(pod("changed"))
    with running(informer):
        eventually(lambda: first.has_synced() and second.has_synced())
        clock.step(3600)
        due.wait_for(4)
        assert ["update same@11 same@11", "update changed@12 changed@12"] == due.told[2:]
        source.modify_drop_watch(pod("changed"))
        source.add_drop_watch(pod("new"))
        _relist(source, clock)
        changes = ["update changed@12 changed@13", "add new@14"]
        assert changes == without.wait_for(4)[2:]
        assert ["update same@11 same@11", *changes] == due.wait_for(7)[4:]
        assert [True, True, False] == without.initial


@pytest.mark.rule("INF-22", "INF-28")
def test_a_resync_sends_no_request_to_the_server(source: FakeSource, clock: FakeClock) -> None:
    informer = informer_of(source, clock, resync=30)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    source.add(pod("a"))
    with running(informer):
        recorder.wait_for(1)
        source.wait_for_open_watches()
        requests = len(source.requests)
        for count in (2, 3):
            clock.step(30)
            assert ["update a@11 a@11"] == recorder.wait_for(count)[-1:]
        assert requests == len(source.requests)


@pytest.mark.rule("INF-30")
def test_a_transform_runs_before_store_and_handlers(source: FakeSource, informer: SharedInformer) -> None:
    informer.set_transform(lambda obj: pod_object(f"{obj.metadata.name}-transformed"))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    source.add(pod("a"))
    with running(informer):
        assert ["add a-transformed@1"] == recorder.wait_for(1)
        assert ["ns/a-transformed"] == informer.store.list_keys()


@pytest.mark.rule("INF-30")
def test_managed_fields_are_never_kept(source: FakeSource, informer: SharedInformer) -> None:
    tree = pod("a")
    tree["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    source.add(tree)
    with running(informer):
        stored = informer.store.get_by_key("ns/a")
    assert stored is not None
    assert b"managedFields" not in stored.raw


@pytest.mark.rule("INF-41")
def test_the_last_watch_error_handler_gets_failed_rounds(
    source: FakeSource, informer: SharedInformer, clock: FakeClock
) -> None:
    heard: list[tuple[Reflector, Exception]] = []
    informer.set_watch_error_handler(lambda *_: pytest.fail("replaced"))
    informer.set_watch_error_handler(lambda reflector, error: heard.append((reflector, error)))
    source.fail("LIST", refusal(403, "Forbidden", "no pods for you"))
    with starting(informer):
        eventually(lambda: _stepped(clock) and informer.has_synced())
    ((reflector, error),) = heard
    assert (source.resource, "no pods for you") == (reflector.resource, getattr(error, "message", ""))


@pytest.mark.rule("INF-30", "INF-41")
def test_settings_come_before_the_start(informer: SharedInformer) -> None:
    with running(informer):
        with pytest.raises(InformerStarted, match="a transform must be set before the informer of pods starts"):
            informer.set_transform(lambda obj: obj)
        with pytest.raises(InformerStarted, match="a watch error handler"):
            informer.set_watch_error_handler(lambda *_: None)
        informer.add_indexers({"name": lambda obj: [obj.metadata.name]})


@pytest.mark.rule("TH-10")
def test_a_blocked_watch_ends_with_the_stop(source: FakeSource, informer: SharedInformer) -> None:
    stop = Stop()
    thread = start_thread("informer", lambda: informer.run(stop))
    source.wait_for_open_watches()
    stop.set()
    thread.join(1)
    assert not thread.is_alive()
    assert source.streams[0].closed


@pytest.mark.rule("INF-44")
def test_many_threads_join_and_leave_while_events_flow(source: FakeSource, informer: SharedInformer) -> None:
    errors: list[Exception] = []

    def join_and_leave() -> None:
        try:
            for _ in range(10):
                informer.remove_event_handler(informer.add_event_handler(Recorder()))
        except InformerStopped:
            pass
        except Exception as error:
            errors.append(error)

    with running(informer) as stop:
        threads = [start_thread(f"joiner-{number}", join_and_leave) for number in range(20)]
        for number in range(500):
            source.add(pod(f"p{number % 50}"))
        threads[0].join(DEADLINE)
        stop.set()
        for thread in threads:
            thread.join(DEADLINE)
    assert [] == errors
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.rule("INF-31")
def test_a_transform_that_drops_the_version_leaves_the_stores_alone(
    source: FakeSource, informer: SharedInformer
) -> None:
    informer.set_transform(lambda obj: pod_object(obj.metadata.name, version=""))
    source.add(pod("a"))
    with running(informer):
        source.wait_for_open_watches()
        source.add(pod("b"))
        eventually(lambda: len(informer.store) == 2)
        assert "11" == informer.store.last_resource_version


@pytest.mark.rule("TH-2")
def test_an_index_function_may_stop_the_informer(source: FakeSource, informer: SharedInformer) -> None:
    stop = Stop()

    def stopping(_: Object) -> list[str]:
        stop.set()
        return []

    informer.add_event_handler(Recorder())
    informer.add_indexers({"stopping": stopping})
    source.add(pod("a"))
    thread = start_thread("informer", lambda: informer.run(stop))
    thread.join(DEADLINE)

    assert (False, True) == (thread.is_alive(), informer.is_stopped())
