"""One plan from its start to its verdict."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import msgspec

from kube.objects import Json
from kube.resources import DM_CLUSTERS, EVENTS, SECRETS, TIDB_CLUSTERS, TIDB_MONITORS
from member.lifecycle.rolling import FINISHED, RESTARTING
from rehearsal.operator import RESYNC
from rehearsal.operator import SETTINGS as DEFAULTS
from sandbox.actor_system import NeverSettles
from simulate.engine.calls import Call
from simulate.engine.components import asked_one_by_one, managed_components, profile
from simulate.engine.engine import Engine
from simulate.engine.other_kinds import OTHER_KINDS, unfinished
from simulate.engine.plan import DELETED, Plan
from simulate.engine.state import State
from simulate.engine.trace import Show
from simulate.engine.worlds import ADVANCED, CLUSTERS, KEY, NAMESPACE, NODES, SETTINGS, STORAGE, consenting, neighbour
from simulate.invariants.facts import status_of
from simulate.invariants.losses import lacking
from simulate.invariants.reporting import unserved
from simulate.judge.alerts import Recorded
from simulate.judge.cross_references import CrossReferenceJudge
from simulate.judge.end_state import Leaves, end_state
from simulate.judge.fulfilled import unfulfilled
from simulate.judge.judge import Invariants, Neighbourhood, Violation
from simulate.judge.lies import LieJudge, is_judged
from simulate.judge.outages import OutageJudge
from simulate.judge.restarts import are_judged
from simulate.judge.stuck_rolls import StuckRollJudge

_MEMBER = re.compile(r"\b(\w+-pd)-\d+\.\1-peer\.(\w+)\.svc\b")
"""A PD member: which one is called is random."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=/)\d+(?=$)")
"""UIDs in names, and the ids of members and stores."""
_RESYNCS = 10
_UNTIL_READY = 120.0
_SETTLED = 45.0
"""Seconds for which a fresh world runs after it became Ready, until nothing is left to do."""

_READS_OF_A_RECONCILE = 6
"""The requests of an idle reconcile to PD, as recorded; each TiDB server gets one (O9)."""
_READS_AT_MOST = 5
"""Additional allowed reads beside one of each member (I40)."""
_READS_OF_OTHERS = {DM_CLUSTERS: 3, TIDB_MONITORS: 5}
"""Reads from a DMCluster's masters (leader and members), and from PD about a monitor's address."""
_READS_ACROSS = 12
"""Reads for an object that refers to another namespace: every ten seconds, of targets that no informer watches."""
_CLUSTERS = frozenset(map(str, (TIDB_CLUSTERS, DM_CLUSTERS)))
_OURS = frozenset(map(str, (TIDB_CLUSTERS, *OTHER_KINDS)))
"""Kinds whose status may change."""
_RENEWS = "addresses"
"""The stage that renews a lease in PD's etcd every few minutes (other-resources.md 3.8)."""
_LOOKS_AT_SECRETS = 2
"""The number of checks of certificates in ten resyncs: every five minutes (docs/tls.md)."""
_MARGIN = 1.1


class NotReady(Exception):
    """Raised if a world cannot be brought to the starting point."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a plan. `writes` are the numbered writes as `method target`; `end` is the end state.

    `restarts`: how often the operator recreated each pod. `conflict`: whether it ended with a condition that names what
    others did, instead of at rest. `sent`: all writes, as `simulate.engine.write_traces` has them, where they were
    collected. `alerts` is what the shipped alerts must do on the scrapes of an outage.
    """

    plan: Plan
    violations: tuple[Violation, ...]
    digest: str
    writes: tuple[str, ...]
    summary: dict[str, int]
    end: Leaves
    rested_at: float | None
    reads_per_hour: float
    restarts: dict[str, int]
    conflict: bool
    sent: tuple[str, ...] = ()
    alerts: Recorded | None = None

    @property
    def passed(self) -> bool:
        """True without violations."""
        return not self.violations


def prepare(plan: Plan, show: Show | None = None) -> Engine:
    """The world at a plan's starting point. Raises NotReady."""
    settings = replace(SETTINGS.get(plan.cluster, DEFAULTS), rechecks=plan.rechecks)
    storage = STORAGE.get(plan.cluster, ())
    engine = Engine(show, settings, NODES.get(plan.cluster), advanced=plan.cluster in ADVANCED, storage=storage)
    if plan.world == "empty":
        return engine
    engine.start_operator()
    _create(engine, plan)
    if not engine.run_until(lambda: _all_at_rest(engine, plan), _UNTIL_READY):
        raise NotReady(f"cluster {plan.cluster!r} is not Ready: {_said(engine, plan)}")
    engine.run(_SETTLED)
    return engine


def _create(engine: Engine, plan: Plan) -> None:
    """Create the clusters of a plan; those that join get a PD to join."""
    engine.apply(consenting(CLUSTERS[plan.cluster](), plan.joined))
    for key, kind in plan.neighbours.items():
        engine.apply(neighbour(key, kind, joins=key in plan.joined), key.partition("/")[0])


def _all_at_rest(engine: Engine, plan: Plan) -> bool:
    return all(map(engine.at_rest, (KEY, *plan.neighbours)))


def _said(engine: Engine, plan: Plan) -> str:
    """The pending work in the conditions of all clusters."""
    return "; ".join(str(engine.condition("Progressing", key)) for key in (KEY, *plan.neighbours))


def run(engine: Engine, plan: Plan, *, always: bool = False) -> Outcome:
    """Carry out and check a plan in a world from `prepare`."""
    faults = (*plan.given, *plan.faults)
    judges = [
        Invariants(
            engine,
            faults,
            always=always,
            restarts=are_judged(plan),
            alternations=plan.lying is not None and key == KEY,
            cluster=key,
        )
        for key in (KEY, *plan.neighbours)
    ]
    judge = judges[0]
    engine.judge = Neighbourhood(judges) if plan.neighbours else judge
    engine.begin(plan)
    if plan.world == "empty":
        engine.start_operator()
        _create(engine, plan)
    across = CrossReferenceJudge(engine.world, judge.state, plan.across) if plan.across else None
    if across and plan.across and plan.across.serves_from:
        engine.later(plan.across.serves_from, across.note_pods)
    rested_at = None
    reads_per_hour = 0.0
    alerts = None
    try:
        alerts = _carry_out(engine, judge, plan)
        for what in engine.unseen if plan.awaited else ():
            judge.report("O10", f"an event waits for {what}, which has not come")
        for what in engine.fought:
            judge.report("FP11", what)
        if not _at_rest(engine, judge, plan):
            judge.report("O10", f"not at rest after {plan.budget} s: {_said(engine, plan)}")
        else:
            rested_at = engine.elapsed
        for what in unfulfilled(judge.state, plan) if plan.fulfilled else ():
            judge.report("fulfilled", what)
        for what in unfinished(judge.state.all, plan.ends_beside):
            judge.report("O10", what)
        judge.end()
        reads_per_hour = _resync(engine, judges, plan)
        for what in across.wrong() if across else ():
            judge.report("consent", what)
    except NeverSettles as error:
        judge.report("O7", f"no rest: {error}")
    finally:
        engine.end()
    engine.trace.mix(engine.world.server.storage.version)
    return Outcome(
        plan=plan,
        violations=tuple(sorted(_counted(plan, judges), key=attrgetter("at"))),
        digest=engine.trace.digest,
        writes=tuple(str(call) for call in engine.calls),
        summary=dict(Counter(map(_summed, engine.done))),
        end=end_state(judge.state.all, judge.state.pd, judge.state.now),
        rested_at=rested_at,
        reads_per_hour=reads_per_hour,
        restarts=dict(judge.lives.made_anew - engine.hands.taken),
        conflict=bool(plan.conflicts) and not _all_at_rest(engine, plan),
        alerts=alerts,
    )


def _counted(plan: Plan, judges: Sequence[Invariants]) -> Iterator[Violation]:
    """The violations that count: of the plan's own cluster while servers lie, few do."""
    for number, judge in enumerate(judges):
        for violation in judge.violations:
            if number or not plan.lying or is_judged(violation.rule, plan.lying):
                yield violation


def _carry_out(engine: Engine, judge: Invariants, plan: Plan) -> Recorded | None:
    """The time of a plan; what is written after it is to be silent breaks O3. What alerts must do, of an outage."""
    if plan.outage:
        return OutageJudge(engine, plan.name, plan.outage, lambda what: judge.report("O8", what)).follow()
    if plan.lying:
        LieJudge(engine, plan.lying, lambda what: judge.report("lies", what)).follow(plan.budget)
        return None
    if plan.stuck:
        StuckRollJudge(engine, plan.stuck, lambda what: judge.report("O8", what)).schedule()
    if plan.serves_at:
        engine.run(plan.serves_at)
        for what in unserved(judge.state):
            judge.report("O10", f"{what} though all that was refused is an edit: {_said(engine, plan)}")
    engine.run((plan.silent_after or plan.budget) - plan.serves_at)
    if not plan.silent_after:
        return None
    if not _at_rest(engine, judge, plan):
        judge.report("O10", f"not at rest after {plan.silent_after} s: {engine.condition('Progressing')}")
    for what in unfinished(judge.state.all, plan.ends_beside):
        judge.report("O10", what)
    written, rolls = len(engine.calls), _rolls(engine)
    engine.run(plan.budget - plan.silent_after)
    for call in engine.calls[written:]:
        if call.target.resource not in _OURS:
            judge.report("O3", f"{call} though the spec means what it meant (stage {call.stage or '-'})")
    for message in _rolls(engine) - rolls:
        judge.report("O3", f"event {message!r} though the spec means what it meant")
    return None


def _rolls(engine: Engine) -> Counter[str]:
    """The messages of the events about rolls, with their counts."""
    events = (item.decode() for item in engine.admin.list_page(EVENTS, NAMESPACE).items)
    return Counter(
        {event["message"]: event.get("count", 1) for event in events if event["reason"] in (RESTARTING, FINISHED)}
    )


def _at_rest(engine: Engine, judge: Invariants, plan: Plan) -> bool:
    """True if the plan has reached its end; after a failover, substitutes serve for the losses."""
    message = engine.condition("Progressing").get("message", "")
    if any(each in message for each in plan.conflicts):
        return True
    if plan.ends == DELETED:
        return judge.state.cluster is None
    if plan.ends_done:
        return _all_at_rest(engine, plan)
    reason = engine.condition("Progressing").get("reason", "")
    return reason in plan.ends_in and not (reason.endswith("FailedOver") and lacking(judge.state))


def _resync(engine: Engine, judges: Sequence[Invariants], plan: Plan) -> float:
    """Ten more resyncs without writes (O3) and with few reads (O9, I40); returns live reads per hour."""
    written, read, idle = len(engine.calls), engine.reads, _all_at_rest(engine, plan)
    judge = judges[0]
    across = _READS_ACROSS if plan.across else 0
    for _ in range(_RESYNCS):
        before, operators = engine.reads, len(engine.operators)
        engine.run(RESYNC)
        most = across + sum(
            _READS_AT_MOST
            + _reads_of_others(invariants.state)
            + _asks_who_answers(invariants.state)
            + len(_certificates(invariants.state))
            + bool(_certificates(invariants.state))
            + sum(len(invariants.state.pods(component)) for component in managed_components())
            for invariants in judges
        )
        # a fault may start or end a second operator meanwhile
        most *= max(operators, len(engine.operators))
        if idle and engine.reads - before > most:
            judge.report("I40", f"{engine.reads - before} live reads in an idle resync, {most} are allowed")
    for call in engine.calls[written:]:
        # permanent faults are still reported, e.g. each crash of a pod
        if call.stage == _RENEWS:
            continue
        if idle or call.target.resource not in _CLUSTERS:
            judge.report("O3", f"{call} in a resync that had nothing to do (stage {call.stage or '-'})")
    read, budget = (
        engine.reads - read,
        _RESYNCS * (across + sum(_reads_of_a_reconcile(invariants.state) for invariants in judges)),
    )
    if idle and read > budget * _MARGIN:
        judge.report("O9", f"{read} live reads in {_RESYNCS} idle resyncs, the budget is {budget}")
    return read * 3600 / (_RESYNCS * RESYNC)


def _reads_of_a_reconcile(state: State) -> float:
    """The average number of live reads of an idle reconcile of a cluster.

    With TLS it reads the client Secret each time, and all Secrets at intervals.
    """
    parts = [component for component in managed_components() if state.pods(component)]
    asked = sum(len(state.pods(part)) for part in parts if asked_one_by_one(part))
    secrets = _certificates(state)
    of_secrets = 1 + len(secrets) * _LOOKS_AT_SECRETS / _RESYNCS if secrets else 0.0
    others = sum(profile(part).idle_reads for part in parts) + _asks_who_answers(state)
    return _READS_OF_A_RECONCILE + asked + others + of_secrets + _reads_of_others(state)


def _reads_of_others(state: State) -> int:
    return sum(reads * len(state.all(resource)) for resource, reads in _READS_OF_OTHERS.items())


def _certificates(state: State) -> list[Json]:
    """The Secrets with certificates."""
    return [secret for secret in state.all(SECRETS) if "tls.crt" in (secret.get("data") or {})]


def _asks_who_answers(state: State) -> bool:
    """True if PD has members in other clusters, one of which may replace its Service (I40, O9)."""
    return bool(status_of(state.cluster, "pd").get("peerMembers"))


def _summed(call: Call) -> str:
    """The summary of a write for O2; the cluster's status is left out, because it contains times."""
    if call.target.resource == str(TIDB_CLUSTERS):
        return "status"
    return _ID.sub("<id>", _MEMBER.sub(r"\1.\2", str(call)))
