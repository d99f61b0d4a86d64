"""An informer as a program would have it, on a way that can break, with everything written down."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from informers.list_watch import ListWatch
from informers.metrics import InformerMetrics
from informers.shared_informer import SharedInformer
from informers.threads import start_thread
from informers.tombstones import DeletedFinalStateUnknown, LastKnown
from kube.client import WATCH_SILENCE, Client
from kube.config import ClusterConfig
from kube.credentials import TokenFile
from kube.http_transport import HttpTransport
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import ByteStream, Request, Response, Transport
from tests.e2e.waiting import CLOCK, eventually
from tests.informer_contract.relay import Relay
from tests.informer_contract.servers import Server


@dataclass(frozen=True, slots=True)
class Asked:
    """One answered request; `at` in seconds of the clock."""

    verb: str
    status: int
    at: float


class Traffic:
    """All requests to a transport and their answers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.asked: list[Asked] = []

    def request(self, request: Request) -> Response:
        """Pass on; only lists come here."""
        answer = self._transport.request(request)
        self.asked.append(Asked("list", answer.status, CLOCK.now()))
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Pass on; only watches come here."""
        stream = self._transport.stream(request, idle_timeout)
        self.asked.append(Asked("watch", stream.status, CLOCK.now()))
        return stream

    def count(self, verb: str, status: int = 200) -> int:
        """The number of requests with this answer."""
        return sum(each.verb == verb and each.status == status for each in self.asked)


class Heard:
    """A handler that records its notifications: `add a=1`, `update a=2`, `delete a`, `lost a`.

    As handlers should, it skips updates in which nothing changed (INF-22). It can be made to block or to fail.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.failures = 0
        self.free = threading.Event()
        self.free.set()

    def on_add(self, obj: Object, is_in_initial_list: bool) -> None:
        """An addition."""
        self._tell(f"add {_shown(obj)}")

    def on_update(self, old: Object, new: Object) -> None:
        """A change."""
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        self._tell(f"update {_shown(new)}")

    def on_delete(self, obj: LastKnown) -> None:
        """A deletion, seen or not."""
        lost = isinstance(obj, DeletedFinalStateUnknown)
        self._tell(f"lost {obj.key.rpartition('/')[2]}" if lost else f"delete {obj.key.rpartition('/')[2]}")

    def await_told(self, *expected: str, within: float = 30.0) -> None:
        """Wait until exactly these notifications have come."""
        eventually(lambda: len(self.told) >= len(expected), within, lambda: self.told)
        assert list(expected) == self.told

    def _tell(self, text: str) -> None:
        assert self.free.wait(60.0)
        if self.failures:
            self.failures -= 1
            raise ValueError(text)
        self.told.append(text)


@dataclass(frozen=True, slots=True)
class Follower:
    """A running informer of the ConfigMaps of one namespace."""

    informer: SharedInformer
    heard: Heard
    traffic: Traffic
    relay: Relay
    registry: CollectorRegistry

    @property
    def skipped(self) -> float:
        """The number of notifications without an object."""
        return (
            self.registry.get_sample_value("informer_unreadable_objects_total", {"resource": str(CONFIG_MAPS)}) or 0.0
        )

    def watches_ended(self, reason: str) -> float:
        """The number of watches that ended this way (MET-20)."""
        labels = {"resource": str(CONFIG_MAPS), "reason": reason}
        return self.registry.get_sample_value("informer_watches_total", labels) or 0.0

    @property
    def last_event(self) -> float:
        """The time of the last watch event, in seconds of the wall clock (MET-20)."""
        labels = {"resource": str(CONFIG_MAPS)}
        return self.registry.get_sample_value("informer_last_event_timestamp_seconds", labels) or 0.0

    def shown(self) -> set[str]:
        """The contents of the cache: `a=1`."""
        return {_shown(obj) for obj in self.informer.store.list()}


Between = Callable[[Transport], Transport]
"""Stands between the informer and its server, as a proxy does."""


@contextlib.contextmanager
def following(
    server: Server, namespace: str, silence: float = WATCH_SILENCE, between: Between = lambda transport: transport
) -> Iterator[Follower]:
    """An informer while the block runs, synced when it begins. `silence` as for the Client."""
    with starting(server, namespace, silence, between) as follower:
        eventually(follower.informer.has_synced)
        yield follower


@contextlib.contextmanager
def starting(
    server: Server,
    namespace: str,
    silence: float = WATCH_SILENCE,
    between: Between = lambda transport: transport,
    timeout: float = 30.0,
) -> Iterator[Follower]:
    """An informer while the block runs. `timeout` as for the Client."""
    stop = Stop()
    with contextlib.closing(Relay(server.port)) as relay:
        way = server.config(relay.port)
        config = ClusterConfig(way.server, way.source, tls=way.tls, credentials=TokenFile(server.token_file, CLOCK))
        with contextlib.closing(HttpTransport(config, {}, CLOCK)) as transport:
            traffic, registry = Traffic(between(transport)), CollectorRegistry()
            retrying = RetryingTransport(traffic, CLOCK, Throttle(Rate(), CLOCK), stop)
            client = Client(retrying, timeout=timeout, watch_silence=silence)
            informer = SharedInformer(
                ListWatch(client, CONFIG_MAPS, namespace),
                CLOCK,
                SystemRandomness(),
                metrics=InformerMetrics(registry),
            )
            follower = Follower(informer, Heard(), traffic, relay, registry)
            informer.add_event_handler(follower.heard)
            thread = start_thread("informer", lambda: informer.run(stop))
            try:
                yield follower
            finally:
                follower.heard.free.set()
                stop.set()
                transport.close()
                thread.join()


def config_map(name: str, value: int) -> Json:
    """A ConfigMap with one value."""
    return {"metadata": {"name": name}, "data": {"value": str(value)}}


def _shown(obj: Object) -> str:
    return f"{obj.metadata.name}={obj.decode()['data']['value']}"
