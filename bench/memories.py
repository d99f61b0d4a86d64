"""`python -m bench.memories`: what each memory and each pace of the operator saves.

A scene is a situation that a memory exists for, such as a PD that is silent. It runs twice: with the memory, and while
the memory forgets at once. It counts requests, writes, reconciles or lines of the log. A seed determines a run, so the
figures are the same on each machine and under any load.

`--record` writes the figures to `bench/memories.json`, which a test compares (tests/bench/test_memories.py): a memory
that saves nothing is to be deleted.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import structlog
from structlog.testing import capture_logs

import member.polling
from apis.problem import Problem
from bench.figures import show
from bench.walk import Walker, start, synced
from controllers import status_pacing
from controllers.cache_waits import CacheWaits
from controllers.controller import Result
from controllers.own_write import OwnWrite
from controllers.queues import REST
from controllers.status_pacing import StatusPacing
from controllers.unknown_fields import UnknownFields, sentence
from controllers.validity import Validity
from controllers.wait_log import _Habit
from dataplane.shared_answers import SharedAnswers
from dataplane.timeouts import AdaptiveTimeoutTransport, OneTimeoutTransport
from kube.admitted import Admitted
from kube.contests import Contests
from kube.event_correlation import Correlator, Happening, ObjectReference
from kube.events import WARNING
from kube.failure_log import FailureLog
from kube.objects import Json, Object
from kube.pruned import Pruned
from kube.reading import Readings, without_status
from kube.resources import SECRETS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS, TIDB_DASHBOARDS, Resource
from kube.retrying import RetryingTransport
from kube.taken_names import TakenNames
from kube.throttle import Rate, Throttle
from kube.url_backoff import UrlBackoff, from_environment
from member.memory import (
    AcceptedSettings,
    CertificateBook,
    Complaints,
    Decided,
    Designs,
    KeptAnswer,
    Refusals,
    Settled,
    Stopwatches,
)
from member.outcome import SOONEST
from ports.clock import FakeClock
from ports.pace import Pace
from ports.stopping import Stop
from ports.transport import Request, Response
from rehearsal.operator import SETTINGS, Operator
from sandbox.apiserver.refusals import forbidden
from sandbox.waiting_clock import WaitingClock
from tests.controllers.simple_world import SimpleWorld
from tests.controllers.tidbcluster.test_tls import TlsWorld
from tests.definitions_of_v16 import definitions_of_v16
from tests.kube.fakes import ScriptedTransport, merged, status
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from workqueue.priority_queue import NO_REST, Rest
from workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    RateLimiter,
    default_controller_rate_limiter,
)

RECORD = Path(__file__).with_suffix(".json")

LEAST = 1.1
"""A memory pays if without it at least a tenth more is counted."""

Judge = Callable[[Readings], Sequence[Problem]]

Substitute = tuple[object, str, object]
"""What makes a memory forget: a class or module, a name in it, and what has this name instead."""


class Figures(msgspec.Struct, frozen=True, rename={"with_": "with"}):
    """What a scene counts with a memory, and without it."""

    counted: str
    with_: int
    without: int

    @property
    def pays(self) -> bool:
        """True if the memory saves enough."""
        return self.without > 0 and self.without >= LEAST * self.with_


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory: its scene, what that counts, and what makes the memory forget at once."""

    name: str
    """Its module, and its class or field."""
    counted: str
    scene: Callable[[], int]
    off: Sequence[Substitute]

    def measured(self) -> Figures:
        """Run the scene with the memory and without it."""
        before = self.scene()
        with ExitStack() as substituted:
            for owner, name, instead in self.off:
                substituted.enter_context(patch.object(owner, name, instead))
            return Figures(self.counted, before, self.scene())


def _nothing(*_: object, **__: object) -> None:
    """Know nothing, note nothing."""


@contextmanager
def _log() -> Iterator[list[Any]]:
    """The lines that the log shows by default, whatever this process does with them."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("info"))
    try:
        with capture_logs() as lines:
            yield lines
    finally:
        structlog.configure(**before)


class Scene:
    """A cluster in a world, and what the operator, set up as in production, has done since the last `begin`."""

    def __init__(self, lines: list[Any], rest: Rest = REST) -> None:
        """`lines` receives the lines of the log; for `rest` see `controllers.queues`."""
        self.world = world = OperatorWorld()
        settings = replace(SETTINGS, rechecks=False)
        world.operator = Operator(world.world, world.clock, 1, settings=settings, rest=rest)
        self.lines, self.seconds = lines, 0.0
        controller, clock = world.operator.controllers[0], world.operator.clock
        sync = controller.sync

        def timed(key: str) -> Result | None:
            began = clock.now()
            try:
                return sync(key)
            finally:
                self.seconds += clock.now() - began

        controller.sync = timed

    def begin(self, servers: int = 1, **spec: Any) -> None:
        """Let the cluster come to rest, with this number of PD and TiKV servers, and count from now on."""
        self.create(servers, **spec)
        self.world.run_until_ready(within=120.0)
        self.world.run(60.0)
        self.world.forget()
        self.lines.clear()
        self.seconds = 0.0

    def create(self, servers: int = 1, **spec: Any) -> None:
        """Create the cluster."""
        tree = sample("basic")
        tree["spec"]["pd"]["replicas"] = tree["spec"]["tikv"]["replicas"] = servers
        self.world.apply(tree | {"spec": merged(tree["spec"], spec)})

    def writes(self, what: str) -> int:
        """The number of writes such as `patch services`."""
        return sum(what in each for each in self.world.writes())

    def statuses(self) -> int:
        """The number of writes of the status."""
        return self.writes("tidbclusters.pingcap.com/status")

    def reads(self) -> int:
        """The number of reads from the API server."""
        return len(self.world.reads())

    def asked(self) -> int:
        """The number of requests to the data plane."""
        return len(self.world.operator.dataplane.requests)

    def logged(self) -> int:
        """The number of lines in the log."""
        return len(self.lines)

    def waited(self) -> int:
        """The seconds that syncs took."""
        return round(self.seconds)


def _counted(act: Callable[[Scene], None], count: Callable[[Scene], int], rest: Rest = REST) -> int:
    with _log() as lines:
        scene = Scene(lines, rest)
        act(scene)
        scene.world.stop()
        return count(scene)


# What happens in a world


def _bring_up(scene: Scene) -> None:
    scene.create(3)
    scene.world.run_until_ready(within=120.0)


def _rest(scene: Scene) -> None:
    scene.begin()
    scene.world.run(300.0)


def _roll(scene: Scene) -> None:
    scene.begin()
    scene.world.change(version="v8.5.3")
    scene.world.run(5.0)
    scene.world.run_until_ready(within=300.0)


def _search(scene: Scene) -> None:
    """TiCI has its bucket's keys from a Secret."""
    server = {"baseImage": "pingcap/tici", "version": "v9.0.0", "replicas": 1}
    keys = {"access_key": "QUs=", "secret_key": "QUs="}
    scene.world.admin.create(SECRETS, {"metadata": {"name": "keys"}, "data": keys}, NAMESPACE)
    claims = [{"resources": {"requests": {"storage": "10Gi"}}}]
    scene.begin(
        ticdc={"baseImage": "pingcap/ticdc", "replicas": 1, "version": "v8.5.2"},
        tiflash={"replicas": 1, "storageClaims": claims, "version": "v8.5.2"},
        tici={
            "meta": server,
            "worker": server,
            "s3": {"endpoint": "http://minio:9000", "bucket": "fts", "secretName": "keys"},
        },
    )
    scene.world.run(300.0)


def _secure(scene: Scene) -> None:
    TlsWorld(scene.world).put_all()
    scene.begin(tlsCluster={"enabled": True})
    scene.world.run(300.0)


def _scale_in(scene: Scene) -> None:
    scene.begin(4)
    scene.world.change(tikv={"replicas": 3})
    scene.world.run(5.0)
    scene.world.run_until_ready(within=300.0)


def _flap(scene: Scene) -> None:
    scene.begin()
    for _ in range(6):
        heal = scene.world.world.faults.host_cut_off(f"{NAMESPACE}/basic-tikv-0")
        scene.world.run(10.0)
        heal()
        scene.world.run(10.0)


def _contradict(scene: Scene) -> None:
    scene.begin()
    scene.world.world.faults.pd_fickle(f"{NAMESPACE}/basic", "/pd/api/v1/stores*")
    scene.world.run(1.0)
    scene.world.change(tikv={"replicas": 2})
    scene.world.run(60.0)


def _silence(scene: Scene, component: str) -> None:
    scene.begin()
    scene.world.world.faults.network_cut(f"{NAMESPACE}/basic-{component}-*")
    scene.world.run(300.0)


def _scale_blindly(scene: Scene) -> None:
    scene.begin()
    scene.world.operator.caches[STATEFUL_SETS].blind = True
    scene.world.change(tidb={"replicas": 2})
    scene.world.run(60.0)


def _lose_a_host_blindly(scene: Scene) -> None:
    scene.begin(3)
    scene.world.operator.caches[TIDB_CLUSTERS].blind = True
    scene.world.world.faults.host_cut_off(f"{NAMESPACE}/basic-tikv-0")
    scene.world.run(120.0)


def _lag_from_the_beginning(scene: Scene) -> None:
    for resource, cache in scene.world.operator.caches.items():
        cache.blind = resource != TIDB_CLUSTERS
    scene.create()
    for _ in range(30):
        scene.world.run(1.0)
        scene.world.operator.resync()


def _rewrite_images(scene: Scene) -> None:
    scene.world.world.faults.webhook("mirror-everywhere")
    scene.create()
    scene.world.run(600.0)


def _undo(scene: Scene) -> None:
    scene.begin()
    for _ in range(60):
        scene.world.admin.patch(SERVICES, "basic-pd-peer", NAMESPACE, {"spec": {"publishNotReadyAddresses": False}})
        scene.world.run(1.0)


def _refuse_a_roll(scene: Scene) -> None:
    def policy(of: Resource, tree: Json, _: Json | None) -> None:
        if of == STATEFUL_SETS and "v8.5.3" in str(tree["spec"]):
            raise forbidden(of, tree["metadata"]["name"], "denied the request")

    scene.begin()
    scene.world.world.server.webhooks.append(policy)
    scene.world.change(version="v8.5.3")
    scene.world.run(600.0)


def _refuse_pods(scene: Scene) -> None:
    scene.world.world.faults.creation_refused("pods", "basic-tikv-*")
    scene.create()
    scene.world.run(300.0)


def _locate_proxies(scene: Scene) -> None:
    proxy = {"baseImage": "pingcap/tiproxy", "replicas": 1, "version": "v1.3.0"}
    scene.begin(tiproxy=proxy, pd={"config": "[replication]\nlocation-labels = ['zone']\n"})
    scene.world.run(300.0)


# Other counts


def _calls(*, rolls: bool) -> int:
    """The calls of a reconcile of a cluster at rest, or of one that waits in a roll."""
    with _log() as lines:
        walker, scene = Walker(), Scene(lines)
        scene.begin()
        start(walker, scene.world)
        synced(walker, scene.world)
        synced(walker, scene.world)
        if rolls:
            scene.world.change(version="v8.5.3")
            scene.world.run(3.0)
        scene.world.stop()
        return walker.reconciles[-1].calls.total()


def _pruned_conditions() -> int:
    with _log():
        world = SimpleWorld(TIDB_DASHBOARDS, crds=definitions_of_v16())
        world.add(clusters=[{"name": "nobody"}], version="v8.5.2", requests={"storage": "1Gi"})
        world.resyncs(20)
        world.stop()
    return sum("patch tidbdashboards" in request for request in world.requests())


def _similar_events() -> int:
    """A thousand in a hundred seconds."""
    clock, correlator = FakeClock(), Correlator()
    about = ObjectReference("v1", "Pod", NAMESPACE, "basic-pd-0")
    sent = 0
    for number in range(1000):
        happening = Happening(about, WARNING, "Failed", f"failure {number}", clock.wall())
        sent += correlator.correlate(happening, clock.now()) is not None
        clock.step(0.1)
    return sent


def _retries(keys: int, seconds: float) -> int:
    """The syncs of keys that fail each time, from the first failure on."""
    clock, count = FakeClock(), 0
    limiter: RateLimiter[str] = default_controller_rate_limiter(clock, base=1.0, max_delay=100.0)
    due = [(limiter.when(str(key)), str(key)) for key in range(keys)]
    heapify(due)
    while due[0][0] < seconds:
        at, key = due[0]
        clock.step(at - clock.now())
        heapreplace(due, (at + limiter.when(key), key))
        count += 1
    return count


def _burst() -> int:
    """The requests of the first second, of a thousand that want to go out at once."""
    clock, sent = FakeClock(), 0
    throttle = Throttle(Rate(), WaitingClock(clock, clock.step))
    for _ in range(1000):
        throttle.take(Stop())
        sent += clock.now() < 1.0
    return sent


def _failing_server() -> int:
    """The requests to it in ten minutes by a client that asks each second, if its back-off is switched on."""
    clock, server = FakeClock(), ScriptedTransport(lambda _: status(500, "InternalError"))
    waiting = WaitingClock(clock, clock.step)
    environ = {"KUBE_CLIENT_BACKOFF_BASE": "1", "KUBE_CLIENT_BACKOFF_DURATION": "60"}
    backoff = from_environment(environ, waiting)
    transport = RetryingTransport(server, waiting, Throttle(Rate(), waiting), Stop(), backoff=backoff)
    while clock.now() < 600.0:
        transport.request(Request("GET", "/"))
        clock.step(1.0)
    return len(server.requests)


def _asked_again(_self: object, _cause: object, _clock: object, ask: Callable[[], Any], **_: object) -> Any:
    return ask()


def _passed_on(self: Any, request: Request) -> Response:
    answer: Response = self._transport.request(request)
    return answer


def _judged_again(_self: Validity, _cached: Object, _facts: object, judge: Judge, **_: bool) -> Sequence[Problem]:
    return judge(Readings(without_status))


MEMORIES = (
    Memory(
        "controllers/cache_waits.py CacheWaits",
        "requests to the data plane in a minute in which the cache of StatefulSets shows no change",
        partial(_counted, _scale_blindly, Scene.asked),
        [(CacheWaits, "paced", lambda _self, outcomes, _clock: outcomes)],
    ),
    Memory(
        "controllers/own_write.py OwnWrite.wait",
        "requests to the data plane in 2 minutes in which the cache of TidbClusters shows no change",
        partial(_counted, _lose_a_host_blindly, Scene.asked),
        [(OwnWrite, "wait", lambda *_: 0.0)],
    ),
    Memory(
        "controllers/own_write.py OwnWrite.is_echo",
        "requests to the data plane in a rehearsed roll, in which keys do not rest",
        partial(_counted, _roll, Scene.asked, NO_REST),
        [(OwnWrite, "is_echo", lambda *_: False)],
    ),
    Memory(
        "controllers/status_pacing.py StatusPacing",
        "writes of the status in 2 minutes in which a node fails and recovers each 20 seconds",
        partial(_counted, _flap, Scene.statuses),
        [(StatusPacing, "pause", lambda *_: 0.0)],
    ),
    Memory(
        "controllers/status_pacing.py DETAILS",
        "writes of the status until a cluster is Ready",
        partial(_counted, _bring_up, Scene.statuses),
        [(status_pacing, "DETAILS", Pace(1e-9, 1e-9))],
    ),
    Memory(
        "controllers/status_pacing.py StatusPacing, by two answers",
        "writes of the status in a minute in which every other answer of PD is old",
        partial(_counted, _contradict, Scene.statuses),
        [(StatusPacing, "pause", lambda *_: 0.0), (StatusPacing, "wrote", lambda *_: False)],
    ),
    Memory(
        "controllers/unknown_fields.py UnknownFields",
        "calls of a reconcile of a cluster at rest",
        partial(_calls, rolls=False),
        [(UnknownFields, "judge", lambda _self, owner, model: sentence(owner, model))],
    ),
    Memory(
        "controllers/validity.py Validity",
        "calls of a reconcile of a cluster at rest",
        partial(_calls, rolls=False),
        [(Validity, "problems", _judged_again)],
    ),
    Memory(
        "controllers/wait_log.py WaitLog",
        "lines of the log in 2 minutes in which a node fails and recovers each 20 seconds",
        partial(_counted, _flap, Scene.logged),
        [(_Habit, "hushes", lambda *_: False)],
    ),
    Memory(
        "dataplane/shared_answers.py SharedAnswers",
        "requests to the data plane in a scale-in",
        partial(_counted, _scale_in, Scene.asked),
        [(SharedAnswers, "of", lambda _self, request, send: send(request))],
    ),
    Memory(
        "dataplane/timeouts.py AdaptiveTimeoutTransport",
        "seconds of 5 minutes that reconciles wait for a silent PD",
        partial(_counted, partial(_silence, component="pd"), Scene.waited),
        [(AdaptiveTimeoutTransport, "request", _passed_on)],
    ),
    Memory(
        "dataplane/timeouts.py OneTimeoutTransport",
        "requests in 5 minutes in which PD is silent",
        partial(_counted, partial(_silence, component="pd"), Scene.asked),
        [(OneTimeoutTransport, "request", _passed_on)],
    ),
    Memory(
        "kube/admitted.py Admitted",
        "patches of a Deployment in 10 minutes whose image a webhook rewrites",
        partial(_counted, _rewrite_images, lambda scene: scene.writes("patch deployments")),
        [(Admitted, "note", _nothing)],
    ),
    Memory(
        "kube/contests.py Contests",
        "patches of a Service in a minute in which another client undoes each",
        partial(_counted, _undo, lambda scene: scene.writes("patch services")),
        [(Contests, "_note", _nothing)],
    ),
    Memory(
        "kube/event_correlation.py Correlator",
        "requests for 1,000 events in 100 seconds about one object",
        _similar_events,
        [(Correlator, "correlate", lambda _self, happening, _now: happening)],
    ),
    Memory(
        "kube/failure_log.py FailureLog",
        "lines of the log in 5 minutes in which TiDB is silent",
        partial(_counted, partial(_silence, component="tidb"), Scene.logged),
        [(FailureLog, "_count", lambda *_: True)],
    ),
    Memory(
        "kube/pruned.py Pruned",
        "writes of the status of a TidbDashboard in 10 minutes, with v1.6's definitions",
        _pruned_conditions,
        [(Pruned, "note", _nothing)],
    ),
    Memory(
        "kube/taken_names.py TakenNames",
        "reads from the API server while all caches are 30 seconds old",
        partial(_counted, _lag_from_the_beginning, Scene.reads),
        [(TakenNames, "last_seen", _nothing)],
    ),
    Memory(
        "kube/throttle.py Throttle",
        "requests in the first second, of 1,000 that are due at once",
        _burst,
        [(Throttle, "take", lambda *_: 0.0)],
    ),
    Memory(
        "kube/url_backoff.py UrlBackoff",
        "requests in 10 minutes to an API server that fails",
        _failing_server,
        [(UrlBackoff, "remaining", lambda *_: 0.0)],
    ),
    Memory(
        "member/memory.py Refusals",
        "patches of StatefulSets in 10 minutes in which a policy refuses them",
        partial(_counted, _refuse_a_roll, lambda scene: scene.writes("patch statefulsets")),
        [(Refusals, "standing", _nothing)],
    ),
    Memory(
        "member/memory.py AcceptedSettings",
        "requests to the data plane in 5 minutes at rest, with location labels",
        partial(_counted, _locate_proxies, Scene.asked),
        [(AcceptedSettings, "is_new", lambda *_: True)],
    ),
    Memory(
        "member/memory.py Complaints",
        "reads from the API server in 5 minutes in which a quota refuses pods",
        partial(_counted, _refuse_pods, Scene.reads),
        [(Complaints, "of", lambda _self, _key, read, _clock: read())],
    ),
    Memory(
        "member/memory.py Decided",
        "calls of a reconcile of a cluster at rest",
        partial(_calls, rolls=False),
        [(Decided, "on", _nothing)],
    ),
    Memory(
        "member/memory.py Designs",
        "calls of a reconcile in a roll",
        partial(_calls, rolls=True),
        [(Designs, "of", lambda _self, _tc, _what, make, **_: make())],
    ),
    Memory(
        "member/memory.py Settled",
        "calls of a reconcile in a roll",
        partial(_calls, rolls=True),
        [(Settled, "holds", lambda *_: False)],
    ),
    Memory(
        "member/memory.py KeptAnswer",
        "calls of a reconcile of a cluster at rest",
        partial(_calls, rolls=False),
        [(KeptAnswer, "of", _asked_again)],
    ),
    Memory(
        "member/memory.py KeptAnswer, location_labels",
        "requests to the data plane in 5 minutes at rest",
        partial(_counted, _rest, Scene.asked),
        [(KeptAnswer, "of", _asked_again)],
    ),
    Memory(
        "member/memory.py KeptAnswer, bucket_keys",
        "reads from the API server in 5 minutes at rest, with TiCI",
        partial(_counted, _search, Scene.reads),
        [(KeptAnswer, "of", _asked_again)],
    ),
    Memory(
        "member/memory.py CertificateBook",
        "reads from the API server in 5 minutes at rest, with TLS",
        partial(_counted, _secure, Scene.reads),
        [(CertificateBook, "is_due", lambda *_, **__: True)],
    ),
    Memory(
        "member/memory.py Stopwatches.is_due",
        "requests to the data plane in 5 minutes at rest",
        partial(_counted, _rest, Scene.asked),
        [(Stopwatches, "is_due", lambda *_: True)],
    ),
    Memory(
        "member/polling.py",
        "requests to the data plane in 5 minutes in which TiDB is silent",
        partial(_counted, partial(_silence, component="tidb"), Scene.asked),
        [(member.polling, "poll_interval", lambda _: SOONEST)],
    ),
    Memory(
        "workqueue/rate_limiters.py ItemExponentialFailureRateLimiter",
        "syncs in an hour of a key that fails",
        partial(_retries, 1, 3600.0),
        [(ItemExponentialFailureRateLimiter, "when", lambda *_: 1.0)],
    ),
    Memory(
        "workqueue/rate_limiters.py BucketRateLimiter",
        "syncs in 10 seconds of 1,000 keys that fail",
        partial(_retries, 1000, 10.0),
        [(BucketRateLimiter, "when", lambda *_: 0.0)],
    ),
)
"""Each memory with what it saves."""


def recorded() -> Mapping[str, Figures]:
    """The recorded figures of each memory."""
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, Figures])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what each memory saves; with `--record`, record it."""
    parser = argparse.ArgumentParser(prog="python -m bench.memories", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RECORD.name}")
    options = parser.parse_args(arguments)
    found = {memory.name: memory.measured() for memory in MEMORIES}
    for name, figures in found.items():
        show(name, figures.with_, figures.without, figures.counted, "the same operator without it")
    if options.record:
        RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
