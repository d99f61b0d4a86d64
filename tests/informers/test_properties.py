"""After any sequence of events between server and informer, the cache equals the server (TEST-5)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from informers.shared_informer import SharedInformer
from informers.tombstones import DeletedFinalStateUnknown, LastKnown
from kube.objects import Object
from ports.clock import FakeClock
from ports.transport import ConnectionRefused
from tests.informers.fake_source import FakeSource, pod, refusal
from tests.informers.support import informer_of

_NAMES = ("a", "b", "c", "d")


class Replay:
    """A handler that keeps its notifications and checks that none is impossible."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self._newest: dict[str, int] = {}

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        assert obj.key not in self.versions, "added twice"
        self._see(obj)

    def on_update(self, old: Object, new: Object) -> None:
        assert self.versions[new.key] == int(old.metadata.resource_version), "an update of a state nobody was told of"
        self._see(new)

    def on_delete(self, obj: LastKnown) -> None:
        del self.versions[obj.key]
        if isinstance(obj, DeletedFinalStateUnknown):
            return
        self._newest[obj.key] = int(obj.metadata.resource_version)

    def _see(self, obj: Object) -> None:
        version = int(obj.metadata.resource_version)
        assert version >= self._newest.get(obj.key, 0), "back in time"
        self.versions[obj.key] = self._newest[obj.key] = version


class World:
    """A server, and an informer driven without threads: its reflector, its store, its handlers, one step each."""

    def __init__(self, *, streaming: bool = False) -> None:
        self.clock = FakeClock()
        self.source = FakeSource(watch_cache=False)
        self.informer: SharedInformer = informer_of(self.source, self.clock, resync=30, streaming=streaming)
        self.handlers = [Replay(), Replay()]
        self.registrations = [
            self.informer.add_event_handler(handler, period)
            for handler, period in zip(self.handlers, (0.0, 30.0), strict=True)
        ]

    def act(self, what: str, name: str) -> None:
        """Let one event happen."""
        getattr(self, what)(name)

    def change(self, name: str) -> None:
        if self._exists(name):
            self.source.modify(pod(name))
        else:
            self.source.add(pod(name))

    def delete(self, name: str) -> None:
        if self._exists(name):
            self.source.delete(f"ns/{name}")

    def repeat(self, _: str) -> None:
        self.source.repeat_last_event()

    def miss(self, name: str) -> None:
        """Change what no watch hears of: the watches have ended, and their versions are expired."""
        self.source.reset_watch()
        if self._exists(name):
            self.source.delete_drop_watch(f"ns/{name}")
        else:
            self.source.add_drop_watch(pod(name))

    def end(self, _: str) -> None:
        self.source.end_watches()

    def break_(self, _: str) -> None:
        self.source.break_watches()

    def expire(self, _: str) -> None:
        self.source.reset_watch()

    def error(self, name: str) -> None:
        errors = {"a": (410, "Expired"), "b": (429, "TooManyRequests"), "c": (500, "InternalError")}
        self.source.send_error(*errors.get(name, (500, "StorageReadError")))

    def refuse(self, name: str) -> None:
        self.source.fail("LIST", refusal(410, "Expired") if name == "a" else refusal(500, "InternalError"))
        self.source.fail("WATCH", ConnectionRefused("GET", "/", "refused"), refusal(410, "Expired"))

    def bookmark(self, _: str) -> None:
        self.source.bookmark()

    def wait(self, _: str) -> None:
        self.clock.step(31)

    def reflect(self, _: str) -> None:
        self._reflect()

    def apply(self, _: str) -> None:
        self.informer.step()

    def deliver(self, _: str) -> None:
        self._deliver()

    def flow(self, _: str = "") -> None:
        """Let everything in flight arrive."""
        while self._reflect():
            pass
        while self.informer.queued():
            self.informer.step()
        while any(registration.pending() for registration in self.registrations):
            self._deliver()

    def _exists(self, name: str) -> bool:
        return f"ns/{name}" in self.source.objects()

    def _reflect(self) -> bool:
        stream = self.source.last_stream
        if stream and not stream.closed and stream.would_block():
            return False
        self.informer.reflector.step()
        return True

    def _deliver(self) -> None:
        for registration in self.registrations:
            assert registration.step() == 0.0, "the handler raised"


_CHANGES = ("change", "delete")
_PROGRESS = ("reflect", "apply", "deliver", "flow", "wait")
_FAULTS = ("repeat", "miss", "end", "break_", "expire", "error", "refuse", "bookmark")
_act = st.one_of(st.sampled_from(_CHANGES), st.sampled_from(_PROGRESS), st.sampled_from(_FAULTS))
_acts = st.lists(st.tuples(_act, st.sampled_from(_NAMES)), min_size=30, max_size=60)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(_acts, st.booleans())
@pytest.mark.rule("TEST-5", "INF-43")
def test_store_and_handlers_end_equal_to_the_server(acts: list[tuple[str, str]], streaming: bool) -> None:
    world = World(streaming=streaming)
    for what, name in acts:
        world.act(what, name)
    world.flow()
    server = {key: int(obj["metadata"]["resourceVersion"]) for key, obj in world.source.objects().items()}
    store = {obj.key: int(obj.metadata.resource_version) for obj in world.informer.store.list()}
    assert server == store
    assert [server, server] == [handler.versions for handler in world.handlers]
    assert world.informer.has_synced()
    assert all(registration.has_synced() for registration in world.registrations)
