"""Runs one plan: the world, one or two operators, edits and faults at their times.

Time moves only when all components rest. A port call of the operator is a step: faults hit it, the judge checks before
and after it, and while it waits the rest of the world continues.

In an interleaved plan the operators' loops are actors (`simulate.engine.interleaving`), and at each port call others
may run: the world, users, the informers, other loops of the same operator, the other operator. Otherwise everything is
in one thread, and a sync runs to its end.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Protocol

import msgspec

from controllers.controller import Result, Sync
from kube.objects import Json, Object, condition_of
from kube.resources import NAMESPACES, PODS, SECRETS, TIDB_CLUSTERS
from member.components import with_workload, workloads
from member.context import OwnCluster, Settings
from member.labels import INSTANCE
from member.lifecycle.workload import Workload
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionLost, Request, Response, Transport, TransportError
from rehearsal.operator import SETTINGS, Operator
from sandbox.actor_system import NeverSettles
from sandbox.kubelet.nodes import NodeSpec
from sandbox.world import World
from simulate.engine import plan as plans
from simulate.engine.calls import Call, Crash, InterceptedTransport, Port, call
from simulate.engine.certificates import secrets
from simulate.engine.components import cluster_of
from simulate.engine.events import Events
from simulate.engine.hands import Hands
from simulate.engine.interleaving import Interleaver, Step
from simulate.engine.request_faults import RequestFaults, RequestRules, refusal
from simulate.engine.trace import Show, Trace
from simulate.engine.worlds import KEY, NAMESPACE, Reseedable, empty_world
from simulate.engine.write_addresses import Address, WriteCounts

_PASSES = 300
"""The number of passes over all operators at one instant after which restless ones are a defect."""

_TURNS = 30 * _PASSES
"""The same if a pass is many turns."""

NEWER = "example.com/newer"
"""The label that a newer operator adds to pods."""


class Judge(Protocol):
    """Checks every step."""

    def sent(self, addresses: Collection[Address]) -> None:
        """A numbered write is about to be sent, whether or not a fault refuses it."""

    def before(self, call: Call) -> None:
        """A write is about to take effect."""

    def after(self, call: Call, answer: Response | None) -> None:
        """The write was answered; None if the answer was lost."""

    def step(self) -> None:
        """The state may have changed."""

    def report(self, rule: str, what: str) -> None:
        """Report a violation."""


class NoJudge:
    """Checks nothing."""

    def sent(self, addresses: Collection[Address]) -> None: ...

    def before(self, call: Call) -> None: ...

    def after(self, call: Call, answer: Response | None) -> None: ...

    def step(self) -> None: ...

    def report(self, rule: str, what: str) -> None: ...


@dataclass(slots=True)
class SyncRecord:
    """One sync: its initial cluster, its calls so far, and the cluster as these have read it.

    `cached_pods` counts the pods of the cluster in the operator's caches, which may be stale.
    """

    number: int
    key: str
    cached: Object | None
    cached_pods: Callable[[], int]
    calls: list[Call] = field(default_factory=list)
    read: Json | None = None

    def note(self, made: Call) -> None:
        """Add a call; a retry replaces the failed one."""
        if self.calls and self.calls[-1].request is made.request:
            self.calls.pop()
        self.calls.append(made)

    def answered(self, made: Call, answer: Response) -> None:
        """Record the cluster as it was read live."""
        target = made.target
        is_cluster = target.resource == str(TIDB_CLUSTERS) and target.key == self.key
        if made.method == "GET" and is_cluster and answer.status == 200:
            self.read = msgspec.json.decode(answer.body)


_CURRENT: ContextVar[SyncRecord | None] = ContextVar("sync", default=None)
"""The current sync of this thread."""


class Engine:
    """One world and its drivers."""

    def __init__(
        self,
        show: Show | None = None,
        settings: Settings = SETTINGS,
        nodes: Sequence[NodeSpec] | None = None,
        *,
        advanced: bool = False,
        storage: Iterable[Json] = (),
    ) -> None:
        """By default there are three `nodes`. For `advanced` and `storage` see `empty_world`."""
        self.settings = settings
        self.clock = FakeClock()
        self.randomness = Reseedable(1)
        self.world: World = empty_world(
            self.clock, self.randomness, self._wait, nodes, advanced=advanced, storage=storage
        )
        self.admin = self.world.client()
        self.trace = Trace(show)
        self.judge: Judge = NoJudge()
        self.while_waiting: Callable[[], None] = lambda: None
        """Called at each event while a caller waits for an answer."""
        self.operators: dict[str, Operator] = {}
        self.calls: list[Call] = []
        """The numbered writes so far, in order."""
        self.done: list[Call] = []
        """The writes that took effect, with or without an answer."""
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
        self._installed = ExitStack()
        self._request_rules = RequestRules(self.clock, lambda what: self.judge.report("R13", what))

    @property
    def unseen(self) -> list[str]:
        """The conditions of the plan's events that have not come true."""
        return self._events.unseen

    @property
    def fought(self) -> Iterator[str]:
        """Violations in the operator's reactions to clients that insist."""
        return self._events.fought

    @property
    def elapsed(self) -> float:
        """Seconds since the plan began."""
        return self.clock.now() - self._began

    @property
    def hands(self) -> Hands:
        """The actions of other clients in this plan."""
        return self._events.hands

    def begin(self, plan: plans.Plan) -> None:
        """Forget the past and schedule the plan's edits and faults."""
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
        """End all threads."""
        if self._interleaver is not None:
            self._interleaver.end_all()
        self.world.data_plane.end_commands()
        self._installed.close()

    def install_newer(self) -> None:
        """Let operators that start from now on give every pod template the label NEWER, until the plan ends."""
        for own in workloads():
            self._installed.enter_context(with_workload(replace(own, stateful_set=partial(_labelled, own))))

    def trouble(self, trouble: plans.Trouble) -> None:
        """Let a share of the requests fail for some time."""
        self._request_faults.troubles.append(trouble)
        self.later(trouble.seconds, lambda: self._request_faults.troubles.remove(trouble))

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Schedule an action."""
        heapq.heappush(self._timed, (self.clock.now() + seconds, next(self._order), action))

    def note(self, who: str, what: str) -> None:
        """Add an event to the trace."""
        self.trace.happened(self.elapsed, who, what)

    # Operators

    def start_operator(self, name: str = "operator", at: int | None = None) -> None:
        """Start a process, replacing one with the same name. For `at` see `Operator`."""

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
        """Kill a process if it runs."""
        if self.operators.pop(name, None) is None:
            return
        self.note(name, "ends")
        if self._interleaver is not None:
            self._interleaver.end(name)

    def look_again(self) -> None:
        """Let every operator look, even without a change."""
        for operator in self.operators.values():
            operator.look_again()

    # Time

    def run(self, seconds: float) -> None:
        """Let all components work for some time. Raises NeverSettles."""
        end = self.clock.now() + seconds
        self.run_until(lambda: self.clock.now() >= end, seconds)

    def run_until(self, condition: Callable[[], bool], within: float) -> bool:
        """Let all components work until `condition` returns True or `within` seconds have passed; return its result."""
        end = self.clock.now() + within
        while True:
            self._work()
            if condition():
                return True
            if self.clock.now() >= end:
                return False
            self._advance(end)

    def jump(self, time: timedelta, *, only_operators: bool = False) -> None:
        """Let the time of day jump, everywhere or on the operators' machine."""
        if only_operators:
            self._ahead += time
        else:
            self.clock.jump(time)

    def _work(self) -> None:
        """Do all work that is due now."""
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
        """Run one step of every operator to its end."""
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
        dues = [due for operator in self.operators.values() if (due := operator.timers.next_due()) is not None]
        if self._interleaver is not None and (due := self._interleaver.next_due()) is not None:
            dues.append(due)
        until = min([end, *dues, *(due for due, _, _ in self._timed[:1])])
        self.world.advance(max(until - self.clock.now(), 0.0), self._has_news)

    def _wait(self, seconds: float) -> None:
        """Let time pass for a caller that waits for an answer or a retry."""

        def is_over() -> bool:
            self.while_waiting()
            return False

        if self._interleaver is None or not self._interleaver.wait(seconds):
            self.world.advance(seconds, is_over)

    def _has_news(self) -> bool:
        self.judge.step()
        return any(operator.has_news() for operator in self.operators.values())

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
            # users act whatever fault hit the write
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
        """Raise the exception of a fault. Raises Crash, ConnectionLost."""
        if isinstance(fault, plans.Crash):
            self.later(fault.seconds, lambda: self._start_again(made.actor))
            raise Crash(f"crashes {fault.when} write {number}: {made}")
        raise ConnectionLost(made.method, made.request.url, "simulated: no answer")

    def _start_again(self, name: str) -> None:
        if name not in self.operators:
            self.start_operator(name)

    def _on_defect(self, where: str, error: Exception) -> None:
        """Report an unexpected exception of a stage or of the sync of a key (O7)."""
        self.judge.report("O7", f"{where} raised {type(error).__name__}: {error}")

    def _watched(self, name: str, sync: Sync) -> Sync:
        """A sync whose start is recorded."""

        def watched(key: str) -> Result | None:
            of = cluster_of(key)
            namespace, _, cluster = of.partition("/")
            caches = self.operators[name].caches
            cached = caches[TIDB_CLUSTERS].get(namespace, cluster)
            pods = lambda: len(caches[PODS].list(namespace, {INSTANCE: cluster}))  # noqa: E731
            record = SyncRecord(next(self._syncs), of, cached, pods)
            token = _CURRENT.set(record)
            failed = True
            try:
                result = sync(key)
                failed = False
                return result
            finally:
                _CURRENT.reset(token)
                if record.calls:
                    self._request_rules.synced(name, key, failed)

        return watched

    # Users

    def apply(self, cluster: Json, namespace: str = NAMESPACE) -> None:
        """Create a TidbCluster and its missing prerequisites: namespace, certificates."""
        self.note("user", f"creates {cluster['metadata']['name']}")
        self.require_namespace(namespace)
        for secret in secrets(cluster, namespace):
            if self.admin.find(SECRETS, secret["metadata"]["name"], namespace) is None:
                self.admin.create(SECRETS, secret, namespace)
        self.admin.create(TIDB_CLUSTERS, cluster, namespace)

    def require_namespace(self, name: str) -> None:
        """Create a namespace if it does not exist."""
        if name != NAMESPACE and self.admin.find(NAMESPACES, name) is None:
            self.admin.create(NAMESPACES, {"metadata": {"name": name}})

    def cluster(self, key: str = KEY) -> Json:
        """The TidbCluster `namespace/name`. Raises NotFound."""
        namespace, _, name = key.partition("/")
        return self.admin.get(TIDB_CLUSTERS, name, namespace).decode()

    def condition(self, kind: str, key: str = KEY) -> Json:
        """A condition of a TidbCluster; empty if it or the cluster does not exist."""
        namespace, _, name = key.partition("/")
        found = self.admin.find(TIDB_CLUSTERS, name, namespace)
        status = (found.decode().get("status") or {}) if found else {}
        return condition_of(status.get("conditions") or (), kind)

    def at_rest(self, key: str = KEY) -> bool:
        """True if a cluster is Ready and the operator has nothing left to do."""
        ready, progress = (self.condition(kind, key) for kind in ("Ready", "Progressing"))
        return ready.get("status") == "True" and progress.get("reason") == "Done"


def _labelled(own: Workload, tc: OwnCluster, config_map: str) -> Json:
    """The StatefulSet that a newer operator builds."""
    built = own.stateful_set(tc, config_map)
    built["spec"]["template"]["metadata"]["labels"][NEWER] = "yes"
    return built
