"""Runs one plan: the world, one or two operators in it, edits and faults at their time.

Time moves only when nobody has anything to do. A port call of the operator is a step: faults hit it, the judge sees it
before and after, and when it has to wait, the rest of the world goes on meanwhile.

In an interleaved plan the loops of the operators are actors (`simulate.interleaving`), and a port call is where others
run: the world, users, the informers and the other loops of the same operator, the other operator. Otherwise all is
one thread, in which a sync goes on to its end.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Protocol

import msgspec

from controllers.controller import Result, Sync
from controllers.errors import IgnoreError, RequeueError
from dataplane.errors import DataPlaneError
from kube.errors import ApiError
from kube.objects import Json, Object, condition_of
from kube.resources import NAMESPACES, SECRETS, TIDB_CLUSTERS
from member.context import Settings
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.randomness import SeededRandomness
from ports.transport import ConnectionLost, Request, Response, Transport, TransportError
from sandbox.actor_system import NeverSettles
from sandbox.kubelet.nodes import NodeSpec
from sandbox.world import World
from simulate import plan as plans
from simulate.calls import Call, Crash, Port, call
from simulate.certificates import secrets
from simulate.components import cluster_of
from simulate.events import Events
from simulate.hands import Hands
from simulate.intercepted_transport import InterceptedTransport
from simulate.interleaving import Interleaver, Step
from simulate.operator import SETTINGS, Operator
from simulate.request_faults import RequestFaults, refusal
from simulate.request_rules import RequestRules
from simulate.trace import Show, Trace
from simulate.worlds import KEY, NAMESPACE, Reseedable, empty_world
from simulate.write_addresses import Address, WriteCounts

_PASSES = 300
"""Passes over all operators at one instant after which it is a defect that they do not come to rest."""

_TURNS = 30 * _PASSES
"""The same where a pass is many turns."""

_EXPECTED = (RequeueError, IgnoreError, ApiError, TransportError, DataPlaneError, LeaseExpired)
"""What a sync may raise."""


class Judge(Protocol):
    """Looks at every step."""

    def sent(self, addresses: Collection[Address]) -> None:
        """A numbered write is about to be sent, whether or not a fault refuses it."""

    def before(self, call: Call) -> None:
        """A write is about to be carried out."""

    def after(self, call: Call, answer: Response | None) -> None:
        """It was answered; None when the answer was lost."""

    def step(self) -> None:
        """Something may have changed."""

    def report(self, rule: str, what: str) -> None:
        """Something is wrong."""


class NoJudge:
    """Judges nothing."""

    def sent(self, addresses: Collection[Address]) -> None:
        """See `Judge`."""

    def before(self, call: Call) -> None:
        """See `Judge`."""

    def after(self, call: Call, answer: Response | None) -> None:
        """See `Judge`."""

    def step(self) -> None:
        """See `Judge`."""

    def report(self, rule: str, what: str) -> None:
        """See `Judge`."""


@dataclass(slots=True)
class SyncRecord:
    """One sync: the cluster that it began with, the calls it has made so far, and the cluster as these have read it."""

    number: int
    key: str
    cached: Object | None
    calls: list[Call] = field(default_factory=list)
    read: Json | None = None

    def note(self, made: Call) -> None:
        """Add a call; one that is sent again, because it failed, takes the place of the one before."""
        if self.calls and self.calls[-1].request is made.request:
            self.calls.pop()
        self.calls.append(made)

    def answered(self, made: Call, answer: Response) -> None:
        """Keep the cluster as it was read live."""
        target = made.target
        is_cluster = target.resource == str(TIDB_CLUSTERS) and target.key == self.key
        if made.method == "GET" and is_cluster and answer.status == 200:
            self.read = msgspec.json.decode(answer.body)


_CURRENT: ContextVar[SyncRecord | None] = ContextVar("sync", default=None)
"""The sync that this thread is in."""


class Engine:
    """One world and what drives it."""

    def __init__(
        self, show: Show | None = None, settings: Settings = SETTINGS, nodes: Sequence[NodeSpec] | None = None
    ) -> None:
        """`nodes` are three where nothing is said."""
        self.settings = settings
        self.clock = FakeClock()
        self.randomness = Reseedable(1)
        self.world: World = empty_world(self.clock, self.randomness, self._wait, nodes)
        self.admin = self.world.client()
        self.trace = Trace(show)
        self.judge: Judge = NoJudge()
        self.operators: dict[str, Operator] = {}
        self.calls: list[Call] = []
        """The numbered writes so far, in order."""
        self.done: list[Call] = []
        """Those that were carried out, whether or not the answer arrived."""
        self.versions: list[int] = []
        """The API server's version before each of them."""
        self.last_syncs: dict[str, SyncRecord] = {}
        """The sync of each operator's last call."""
        self.reads = 0
        self._began = 0.0
        self._ahead = timedelta()
        self._resyncs = True
        self._interleaver: Interleaver | None = None
        self._seeds, self._syncs = count(1), count(1)
        self._timed: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._request_faults = RequestFaults((), 1, self.clock.now)
        self._write_counts = WriteCounts(())
        self._events = Events(self)
        self._request_rules = RequestRules(self.clock, lambda what: self.judge.report("R13", what))

    @property
    def unseen(self) -> list[str]:
        """What events of the plan wait for, and has not come."""
        return self._events.unseen

    @property
    def fought(self) -> Iterator[str]:
        """What is wrong with how the operator answered those that insist on something."""
        return self._events.fought

    @property
    def elapsed(self) -> float:
        """Seconds since the plan began."""
        return self.clock.now() - self._began

    @property
    def hands(self) -> Hands:
        """What others have done in this plan."""
        return self._events.hands

    def begin(self, plan: plans.Plan) -> None:
        """Forget what was, and have the plan's edits and faults happen in their time."""
        self.randomness.reseed(plan.seed)
        self.calls.clear()
        self.done.clear()
        self.versions.clear()
        self._began = self.clock.now()
        self._resyncs = plan.resyncs
        for operator in self.operators.values():
            operator.resyncs = plan.resyncs
        self._request_faults = RequestFaults(plan.faults, plan.seed, self.clock.now)
        self._write_counts = WriteCounts(plan.events)
        self._events = Events(self, plan.events)
        if plan.is_interleaved:
            self._interleaver = Interleaver(self.clock, SeededRandomness(f"interleaver {plan.seed}"))
            for name, operator in self.operators.items():
                self._interleaver.add(name, self._loops(name, operator))

    def end(self) -> None:
        """Leave no thread."""
        if self._interleaver is not None:
            self._interleaver.end_all()
        self.world.data_plane.end_commands()

    def trouble(self, trouble: plans.Trouble) -> None:
        """Let a share of the requests fail for some time."""
        self._request_faults.troubles.append(trouble)
        self.later(trouble.seconds, lambda: self._request_faults.troubles.remove(trouble))

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Have something happen in some time."""
        heapq.heappush(self._timed, (self.clock.now() + seconds, next(self._order), action))

    def note(self, who: str, what: str) -> None:
        """Write what happened into the trace."""
        self.trace.happened(self.elapsed, who, what)

    # Operators

    def start_operator(self, name: str = "operator", at: int | None = None) -> None:
        """Start a process; one of the same name is gone. `at`: see `Operator`."""

        def exchange(port: Port, transport: Transport, request: Request) -> Response:
            return self._exchange(name, port, transport, request)

        self.note(name, "starts")
        self._request_rules.forget(name)
        operator = self.operators[name] = Operator(
            self.world,
            self.clock,
            next(self._seeds),
            kubernetes=lambda transport: InterceptedTransport(Port.KUBERNETES, transport, exchange),
            dataplane=lambda transport: InterceptedTransport(Port.DATA_PLANE, transport, exchange),
            watched=lambda sync: self._watched(name, sync),
            wait=self._wait,
            ahead=lambda: self._ahead,
            at=at,
            settings=self.settings,
            on_defect=self._on_defect,
        )
        operator.resyncs = self._resyncs
        if self._interleaver is not None:
            self._interleaver.add(name, self._loops(name, operator))

    def _loops(self, name: str, operator: Operator) -> list[Step]:
        return [lambda step=step: self._step(name, step) for step in operator.loops]  # type: ignore[misc]

    def stop_operator(self, name: str = "operator") -> None:
        """End a process, if it runs, without a word."""
        if self.operators.pop(name, None) is None:
            return
        self.note(name, "ends")
        if self._interleaver is not None:
            self._interleaver.end(name)

    def look_again(self) -> None:
        """Have every operator look, whether or not something changed."""
        for operator in self.operators.values():
            operator.look_again()

    # Time

    def run(self, seconds: float) -> None:
        """Let everybody work for some time. Raises NeverSettles."""
        end = self.clock.now() + seconds
        self.run_until(lambda: self.clock.now() >= end, seconds)

    def run_until(self, condition: Callable[[], bool], within: float) -> bool:
        """Let everybody work until `condition` holds, or for `within` seconds; return whether it does."""
        end = self.clock.now() + within
        while True:
            self._work()
            if condition():
                return True
            if self.clock.now() >= end:
                return False
            self._advance(end)

    def jump(self, time: timedelta, *, only_operators: bool = False) -> None:
        """Have the time of day jump, everywhere or on the machine of the operators."""
        if only_operators:
            self._ahead += time
        else:
            self.clock.jump(time)

    def _work(self) -> None:
        """Do all that is due at this instant."""
        turn, turns = (self._interleaver.turn, _TURNS) if self._interleaver else (self._pass, _PASSES)
        for _ in range(turns):
            self._happen()
            self.world.settle()
            self._events.look()
            worked = turn()
            self.judge.step()
            if not worked:
                return
        raise NeverSettles(f"the operator still syncs after {turns} turns at {self.elapsed} s")

    def _pass(self) -> bool:
        """One step of every operator, to its end."""
        worked = [self._step(name, each.step) for name, each in list(self.operators.items())]
        return any(worked)

    def _step(self, name: str, step: Step) -> bool:
        if name not in self.operators:
            return False
        try:
            return step()
        except Crash as crash:
            self.stop_operator(name)
            self.note(name, str(crash))
            return True

    def _happen(self) -> None:
        while self._timed and self._timed[0][0] <= self.clock.now():
            heapq.heappop(self._timed)[2]()

    def _advance(self, end: float) -> None:
        dues = [due for each in self.operators.values() if (due := each.timers.next_due()) is not None]
        if self._interleaver is not None and (due := self._interleaver.next_due()) is not None:
            dues.append(due)
        until = min([end, *dues, *(due for due, _, _ in self._timed[:1])])
        self.world.advance(max(until - self.clock.now(), 0.0), self._has_news)

    def _wait(self, seconds: float) -> None:
        """Who asks has to wait for an answer, or before asking again."""
        if self._interleaver is None or not self._interleaver.wait(seconds):
            self.world.advance(seconds)

    def _has_news(self) -> bool:
        self.judge.step()
        return any(each.has_news() for each in self.operators.values())

    # Requests of the operators

    def _exchange(self, name: str, port: Port, transport: Transport, request: Request) -> Response:
        if self._interleaver is None:
            return self._ask(name, port, transport, request)
        self._interleaver.preemption_point()
        answer = self._ask(name, port, transport, request)
        self._interleaver.preemption_point()
        return answer

    def _ask(self, name: str, port: Port, transport: Transport, request: Request) -> Response:
        sync = _CURRENT.get()
        made = call(name, sync.number if sync else 0, port, request)
        if sync is not None:
            sync.note(made)
            self.last_syncs[name] = sync
        self._request_rules.asking(made)
        answer = self._numbered(made, transport) if made.counts else self._carry(made, 0, transport)
        if sync is not None:
            sync.answered(made, answer)
        self._request_rules.answered(made, answer)
        return answer

    def _numbered(self, made: Call, transport: Transport) -> Response:
        self.calls.append(made)
        self.versions.append(self.world.server.storage.version)
        addresses = self._write_counts.sent(made)
        self.judge.sent(addresses)
        self._events.on_write(addresses, "before")
        try:
            return self._carry(made, len(self.calls), transport, addresses)
        finally:
            # users do what they do, whatever fault hit the write
            self._events.on_write(addresses, "after")

    def _carry(self, made: Call, number: int, transport: Transport, addresses: Collection[Address] = ()) -> Response:
        self.reads += not made.is_write
        fault = self._request_faults.of(addresses, made)
        if fault is not None and not isinstance(fault, plans.Refused) and fault.when == "before":
            self.trace.exchange(self.elapsed, made, None, number, "fault before")
            self._raise_fault(fault, made, number)
        if isinstance(fault, plans.Refused):
            answer = refusal(fault, made)
            self.trace.exchange(self.elapsed, made, answer, number, "refused by a fault")
            return answer
        if made.is_write:
            self.judge.before(made)
        try:
            answer = transport.request(made.request)
        except TransportError:
            self.trace.exchange(self.elapsed, made, None, number)
            if made.is_write:
                self.judge.after(made, None)
            raise
        if number and answer.status < 400:
            self.done.append(made)
        if fault is None:
            self.trace.exchange(self.elapsed, made, answer, number)
        if made.is_write:
            self.judge.after(made, answer)
        if fault is not None:
            self.trace.exchange(self.elapsed, made, answer, number, "fault after")
            self._raise_fault(fault, made, number)
        return answer

    def _raise_fault(self, fault: plans.Crash | plans.Lost | plans.Refused, made: Call, number: int) -> None:
        """Raise what a fault does. Raises Crash, ConnectionLost."""
        if isinstance(fault, plans.Crash):
            self.later(fault.seconds, lambda: self._start_again(made.actor))
            raise Crash(f"crashes {fault.when} write {number}: {made}")
        raise ConnectionLost(made.method, made.request.url, "simulated: no answer")

    def _start_again(self, name: str) -> None:
        if name not in self.operators:
            self.start_operator(name)

    def _on_defect(self, stage: str, error: Exception) -> None:
        """A stage raised what nobody expects; the sync goes on (O7)."""
        self.judge.report("O7", f"stage {stage} raised {type(error).__name__}: {error}")

    def _watched(self, name: str, sync: Sync) -> Sync:
        """A sync whose beginning is noted, and whose defects are reported to the judge (O7)."""

        def watched(key: str) -> Result | None:
            of = cluster_of(key)
            namespace, _, cluster = of.partition("/")
            cached = self.operators[name].caches[TIDB_CLUSTERS].get(namespace, cluster)
            record = SyncRecord(next(self._syncs), of, cached)
            token = _CURRENT.set(record)
            failed = True
            try:
                result = sync(key)
                failed = False
                return result
            except _EXPECTED:
                raise
            except Exception as error:
                self.judge.report("O7", f"sync of {key} raised {type(error).__name__}: {error}")
                raise
            finally:
                _CURRENT.reset(token)
                if record.calls:
                    self._request_rules.synced(name, key, failed)

        return watched

    # Users

    def apply(self, cluster: Json, namespace: str = NAMESPACE) -> None:
        """Create a TidbCluster, and what it needs where that is missing: its namespace, certificates."""
        self.note("user", f"creates {cluster['metadata']['name']}")
        if namespace != NAMESPACE and self.admin.find(NAMESPACES, namespace) is None:
            self.admin.create(NAMESPACES, {"metadata": {"name": namespace}})
        for secret in secrets(cluster, namespace):
            if self.admin.find(SECRETS, secret["metadata"]["name"], namespace) is None:
                self.admin.create(SECRETS, secret, namespace)
        self.admin.create(TIDB_CLUSTERS, cluster, namespace)

    def cluster(self, key: str = KEY) -> Json:
        """The TidbCluster `namespace/name`. Raises NotFound."""
        namespace, _, name = key.partition("/")
        return self.admin.get(TIDB_CLUSTERS, name, namespace).decode()

    def condition(self, kind: str, key: str = KEY) -> Json:
        """A condition of a TidbCluster, empty when it has none of that type, or is not there."""
        namespace, _, name = key.partition("/")
        found = self.admin.find(TIDB_CLUSTERS, name, namespace)
        status = (found.decode().get("status") or {}) if found else {}
        return condition_of(status.get("conditions") or (), kind)

    def at_rest(self, key: str = KEY) -> bool:
        """Whether a cluster is Ready and the operator has nothing left to do for it."""
        ready, progress = (self.condition(kind, key) for kind in ("Ready", "Progressing"))
        return ready.get("status") == "True" and progress.get("reason") == "Done"
