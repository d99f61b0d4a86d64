"""Checks every step against the invariants, and records each violation once."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

import msgspec

from kube.objects import Json
from ports.transport import Response
from rehearsal.operator import RESYNC
from simulate.engine import plan
from simulate.engine.calls import Call
from simulate.engine.components import cluster_of, managed_components
from simulate.engine.engine import Engine, SyncRecord
from simulate.engine.state import State, pod_of_member
from simulate.engine.worlds import KEY
from simulate.engine.write_addresses import Address, address
from simulate.invariants import LASTING, ON_STATE, ON_WRITE, TWO_RESYNCS
from simulate.invariants.facts import parallelism
from simulate.invariants.operator_write import OperatorWrite
from simulate.judge.alternations import Alternations
from simulate.judge.asked_for import AskedFor
from simulate.judge.backups import BackupJudge
from simulate.judge.dm import DMJudge
from simulate.judge.flushes import FlushJudge
from simulate.judge.restarts import Lives, Restarts
from simulate.judge.schedules import ScheduleJudge

_CALLS_OF_A_SYNC = 34
_CALLS_FOR_A_POD = 3
"""The maximum number of requests of a sync, as recorded, with some margin (O9): members of PD confirm a removal."""
_CALLS_OF_A_MOVE = 12
"""Additional requests for each further pod that may be created or removed at the same time."""


class Violation(msgspec.Struct, frozen=True):
    """`rule` is the id of an invariant or oracle; `at` is in seconds from the start of the plan."""

    rule: str
    at: float
    what: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.rule} at {self.at:.3f} s: {self.what}"


class Invariants:
    """The judge of a run with these `faults`.

    Invariants of the state are checked when it has changed, and at least once in each resync, because some depend on
    the time; with `always`, at every step. `restarts`: needless restarts are reported. `alternations`: reasons that
    alternate are reported. Other faults than lies change what the operator sees without a trace in the state.
    `cluster`: the checked cluster, `namespace/name`.
    """

    def __init__(
        self,
        engine: Engine,
        faults: Iterable[plan.Fault] = (),
        *,
        always: bool = False,
        restarts: bool = False,
        alternations: bool = False,
        cluster: str = KEY,
    ) -> None:
        self._engine = engine
        self._restarts = Restarts() if restarts else None
        self._always = always
        events = list(faults)
        self._quiet_time = QuietTime(events)
        hands = (event for event in events if isinstance(event, plan.Foreign | plan.Insists))
        self._others = frozenset(each.target for each in hands)
        self._last_seen: Hashable = None
        self._looks_again_at = 0.0
        self._pending: dict[int, tuple[OperatorWrite, list[tuple[str, str]]]] = {}
        """The writes in progress with their violations, by identity."""
        self._since: dict[tuple[str, str], float] = {}
        """Since when each temporary violation has existed."""
        self._counted: dict[int, int] = {}
        """The number of a sync's calls at its last check, by the sync's number."""
        self._reported: set[tuple[str, str]] = set()
        self.state = State(engine.world, *cluster.split("/"))
        self.state.evicted_by_others = frozenset(filter(None, map(plan.evicted_by_hand, events)))
        self.state.look()
        self._asked_for = AskedFor(self.state)
        self.lives = Lives()
        unreadable = (event.seconds for event in events if isinstance(event, plan.World) and event.verb == "etcd_down")
        self._backups = BackupJudge(engine.world, self.state, max(unreadable, default=0.0))
        self._flushes = FlushJudge(self.state, tells=not any(isinstance(event, plan.Crash) for event in events))
        self._schedules = ScheduleJudge(self.state)
        self._dm = DMJudge(engine.world, self.state.namespace)
        self._alternations = (
            Alternations(self.state, lambda: self._quiet_time.passed(engine.elapsed)) if alternations else None
        )
        self.violations: list[Violation] = []

    def sent(self, addresses: Collection[Address]) -> None:
        self._quiet_time.wrote(addresses, self._engine.elapsed)

    def before(self, call: Call) -> None:
        write = self._operator_write(call)
        self.state.evicted_for_us |= {write.ended_eviction} - {0}
        found = [(rule, what) for rule, wrong in ON_WRITE.items() if (what := wrong(write))]
        if what := self._asked_for.before(write):
            found.append(("I42", what))
        found += (("flush", what) for what in self._flushes.before(write))
        found += self._dm.before(call, self._engine.settings.failover)
        self._pending[id(call)] = write, found

    def _operator_write(self, call: Call) -> OperatorWrite:
        failover, sync = self._engine.settings.failover, self._engine.last_syncs.get(call.actor)
        if sync is None:
            return OperatorWrite(call, self.state, None, failover)
        if cluster_of(call.key) != self.state.key:
            # the sync of a Backup or another cluster has not observed this one
            return OperatorWrite(call, self.state, None, failover, tuple(sync.calls[:-1]))
        seen: Json | None = sync.cached.decode() if sync.cached else None
        return OperatorWrite(call, self.state, seen, failover, tuple(sync.calls[:-1]), sync.read, self._others)

    def after(self, call: Call, answer: Response | None) -> None:
        """Drop the violations of a write that the server refused: preconditions exist for this."""
        is_accepted = answer is None or answer.status < 400
        for alternation in self._alternations.wrote(call) if self._alternations and is_accepted else ():
            self.report("alternation", alternation)
        write, found = self._pending.pop(id(call), (None, []))
        if write is None:
            # it is about another cluster
            self.step()
            return
        if is_accepted:
            for rule, wrong in found:
                self.report(rule, wrong)
            if what := self._asked_for.after(write):
                self.report("I42", what)
        self.step()

    def step(self) -> None:
        version, now = self.state.look(), self._engine.elapsed
        if version != self._last_seen or now >= self._looks_again_at or self._always:
            self._last_seen, self._looks_again_at = version, now + RESYNC
            self.state.watch()
            self.lives.look(self.state)
            self._judge_state()
            for rule, what in (*self._backups.look(), *self._schedules.look()):
                self.report(rule, what)
            for what in self._restarts.needless(self.state) if self._restarts else ():
                self.report("R24", what)
            self._since = {each: self._since.get(each, now) for each in self._lasting()}
        if self._since:
            self._judge_lasting()
        for sync in self._engine.last_syncs.values():
            made = len(sync.calls)
            if made > _CALLS_OF_A_SYNC and sync.key == self.state.key and self._counted.get(sync.number) != made:
                # later there may be fewer pods
                self._counted[sync.number] = made
                self._judge_budget(sync)

    def end(self) -> None:
        """Check the end of the plan."""
        flushes = (("flush", what) for what in self._flushes.end())
        for rule, what in (*self._backups.end(self._engine.done), *self._dm.end(), *flushes):
            self.report(rule, what)

    def _judge_state(self) -> None:
        cluster = self.state.cluster
        if cluster and cluster["metadata"]["resourceVersion"] == self._engine.hands.said:
            # another client has written the status, and the operator has not yet replaced it
            return
        for rule, wrong in ON_STATE.items():
            if what := wrong(self.state):
                self.report(rule, what)

    def _lasting(self) -> Iterator[tuple[str, str]]:
        for rule, lasting in LASTING.items():
            for what in lasting.found(self.state):
                yield rule, what
        for what in self._asked_for.lasting(self.state):
            yield "I42", what

    def _judge_lasting(self) -> None:
        now = self._engine.elapsed
        quiet_since = self._quiet_time.since(now)
        if quiet_since is None:
            return
        for (rule, what), since in self._since.items():
            if now - max(since, quiet_since) > (LASTING[rule].seconds if rule in LASTING else TWO_RESYNCS):
                self.report(rule, what)

    def _judge_budget(self, sync: SyncRecord) -> None:
        pods = sum(len(self.state.pods(component)) for component in managed_components())
        # an operator with stale caches asks the servers of pods that have gone
        budget = _CALLS_OF_A_SYNC + _CALLS_FOR_A_POD * max(pods, sync.cached_pods())
        cluster = self.state.cluster
        own = {pod["metadata"]["name"] for pod in self.state.pods("pd").values()}
        # the members of PD in other clusters are asked, too
        budget += _CALLS_FOR_A_POD * len({pod_of_member(member) for member in self.state.members} - own)
        at_once = max(
            parallelism(cluster, component, out=out) for component in managed_components() for out in (True, False)
        )
        budget += _CALLS_OF_A_MOVE * (at_once - 1)
        if len(sync.calls) > budget:
            self.report("O9", f"a sync of {sync.calls[0].key} makes more than {budget} calls")

    def report(self, rule: str, what: str) -> None:
        if (rule, what) in self._reported:
            return
        self._reported.add((rule, what))
        found = Violation(rule, round(self._engine.elapsed, 3), what)
        self.violations.append(found)
        self._engine.note("JUDGE", str(found))


class QuietTime:
    """The times without faults, in seconds from the start of a plan.

    Temporary violations count against the operator only after all faults are over.
    """

    def __init__(self, faults: Iterable[plan.Fault] = ()) -> None:
        self._at_write: dict[Address, list[plan.Fault]] = {}
        self._broken: list[tuple[float, float]] = []
        """The intervals with faults."""
        self._uneven: list[tuple[float, float]] = []
        """The intervals in which equal requests get different answers."""
        for fault in faults:
            if where := address(fault):
                self._at_write.setdefault(where, []).append(fault)
            else:
                self._begin(fault, fault.at or 0.0)

    def wrote(self, addresses: Collection[Address], at: float) -> None:
        """Record that the operator has sent a write with these addresses."""
        for fault in (fault for each in addresses for fault in self._at_write.pop(each, ())):
            self._begin(fault, at)

    def since(self, at: float) -> float | None:
        """Since when no fault is active; None while one is."""
        end = max((end for begin, end in self._broken if begin <= at), default=0.0)
        return end if end <= at else None

    def passed(self, at: float) -> float:
        """A value that changes when a fault begins or ends, and always while equal requests get different answers."""
        if any(begin <= at < end for begin, end in self._uneven):
            return at
        return -sum((begin <= at) + (end <= at) for begin, end in self._broken)

    def _begin(self, fault: plan.Fault, at: float) -> None:
        # a permanent fault is the normal state of the world
        lasts = at, at + float(getattr(fault, "seconds", 0.0))
        self._broken.append(lasts)
        if _is_uneven(fault):
            self._uneven.append(lasts)


def _is_uneven(fault: plan.Fault) -> bool:
    """True if equal requests get different answers during a fault: some fail, or one of several servers lies."""
    if not isinstance(fault, plan.World):
        return isinstance(fault, plan.Trouble)
    target = str(fault.arguments.get("target", ""))
    is_one_master = fault.verb == "server_lies" and "-dm-master-" in target and not target.endswith("*")
    return is_one_master or fault.arguments.get("every", 1) != 1 or fault.arguments.get("who") == "follower"


class Neighbourhood:
    """The judges of a plan's clusters; the first judges the plan's own cluster.

    A sync of one cluster must not change another. Joined clusters share their PD, its members and stores.
    """

    def __init__(self, judges: Sequence[Invariants]) -> None:
        self._judges = judges

    def sent(self, addresses: Collection[Address]) -> None:
        for invariants in self._judges:
            invariants.sent(addresses)

    def before(self, call: Call) -> None:
        hit = [invariants for invariants in self._judges if invariants.state.concerns(call)]
        # several clusters may share a PD
        own = [invariants for invariants in hit if invariants.state.key == cluster_of(call.key)]
        for invariants in own or hit:
            invariants.before(call)
        if call.key and hit and not own:
            self.report("neighbour", f"{call}, in a sync of {call.key}, changes what is of {hit[0].state.key}")

    def after(self, call: Call, answer: Response | None) -> None:
        for invariants in self._judges:
            invariants.after(call, answer)

    def step(self) -> None:
        for invariants in self._judges:
            invariants.step()

    def report(self, rule: str, what: str) -> None:
        self._judges[0].report(rule, what)
