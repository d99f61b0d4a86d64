"""One plan from its beginning to its verdict."""

import re
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import msgspec

from kube.objects import Json
from kube.resources import DM_CLUSTERS, SECRETS, TIDB_CLUSTERS, TIDB_MONITORS
from sandbox.actor_system import NeverSettles
from simulate.alerts import Recorded
from simulate.calls import Call
from simulate.components import asked_one_by_one, managed_components, profile
from simulate.end_state import Leaves, end_state
from simulate.engine import Engine
from simulate.invariants.facts import status_of
from simulate.invariants.losses import lacking
from simulate.invariants.reporting import unserved
from simulate.judge import Invariants, Violation
from simulate.neighbourhood import Neighbourhood
from simulate.operator import RESYNC
from simulate.operator import SETTINGS as DEFAULTS
from simulate.other_kinds import OTHER_KINDS, unfinished
from simulate.outage_judge import OutageJudge
from simulate.plan import DELETED, Plan
from simulate.restarts import are_judged
from simulate.state import State
from simulate.trace import Show
from simulate.worlds import CLUSTERS, KEY, NODES, SETTINGS, consenting, neighbour

_MEMBER = re.compile(r"\b(\w+-pd)-\d+\.\1-peer\.(\w+)\.svc\b")
"""A member of PD: which of them is asked is chance."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=/)\d+(?=$)")
"""UIDs in names, and the ids of members and stores."""
_RESYNCS = 10
_UNTIL_READY = 120.0
_SETTLED = 45.0
"""Seconds a fresh world goes on after it became Ready, until nothing is left to do."""

_READS_OF_A_RECONCILE = 6
"""What an idle reconcile asks PD, as recorded; of each TiDB server it asks one thing (O9)."""
_READS_AT_MOST = 5
"""What it may ask beside one thing of each member (I40)."""
_READS_OF_OTHERS = {DM_CLUSTERS: 3, TIDB_MONITORS: 5}
"""What is asked of a DMCluster's masters, who leads and all members; and of PD whether it knows where a monitor is."""
_CLUSTERS = frozenset(map(str, (TIDB_CLUSTERS, DM_CLUSTERS)))
_OURS = frozenset(map(str, (TIDB_CLUSTERS, *OTHER_KINDS)))
"""Whose status may say something new."""
_RENEWS = "addresses"
"""The stage that writes to PD's etcd what would end with its lease, each few minutes (other-resources.md 3.8)."""
_LOOKS_AT_SECRETS = 2
"""How often certificates are looked at in ten resyncs: each five minutes (docs/tls.md)."""
_MARGIN = 1.1


class NotReady(Exception):
    """Raised when a world cannot be brought to where plans begin."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a plan. `writes` are the numbered writes as `method target`; `end` the end state.

    `restarts`: how often each pod was made anew, but for what others did to it. `conflict`: whether it ended with a
    condition that names what others did, instead of at rest. `sent`: all writes, as `simulate.write_traces` has them,
    where they were collected. `alerts` is what the shipped alerts must do on the scrapes of an outage.
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
        """Whether nothing was wrong."""
        return not self.violations


def prepare(plan: Plan, show: Show | None = None) -> Engine:
    """The world in which a plan begins. Raises NotReady."""
    engine = Engine(show, SETTINGS.get(plan.cluster, DEFAULTS), NODES.get(plan.cluster))
    if plan.world == "empty":
        return engine
    engine.start_operator()
    _create(engine, plan)
    if not engine.run_until(lambda: _all_at_rest(engine, plan), _UNTIL_READY):
        raise NotReady(f"cluster {plan.cluster!r} is not Ready: {_said(engine, plan)}")
    engine.run(_SETTLED)
    return engine


def _create(engine: Engine, plan: Plan) -> None:
    """The clusters of a plan; those that join have a PD to join."""
    engine.apply(consenting(CLUSTERS[plan.cluster](), plan.joined))
    for key, kind in plan.neighbours.items():
        engine.apply(neighbour(key, kind, joins=key in plan.joined), key.partition("/")[0])


def _all_at_rest(engine: Engine, plan: Plan) -> bool:
    return all(map(engine.at_rest, (KEY, *plan.neighbours)))


def _said(engine: Engine, plan: Plan) -> str:
    """What the conditions of all clusters say is left to do."""
    return "; ".join(str(engine.condition("Progressing", key)) for key in (KEY, *plan.neighbours))


def run(engine: Engine, plan: Plan, *, always: bool = False) -> Outcome:
    """Carry a plan out in a world that `prepare` made for it, and judge."""
    faults = (*plan.given, *plan.faults)
    judges = [
        Invariants(engine, faults, always=always, restarts=are_judged(plan), cluster=key)
        for key in (KEY, *plan.neighbours)
    ]
    judge = judges[0]
    engine.judge = Neighbourhood(judges) if plan.neighbours else judge
    engine.begin(plan)
    if plan.world == "empty":
        engine.start_operator()
        _create(engine, plan)
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
        for what in unfinished(judge.state.all, plan.ends_beside):
            judge.report("O10", what)
        judge.end()
        reads_per_hour = _resync(engine, judges, plan)
    except NeverSettles as error:
        judge.report("O7", f"no rest: {error}")
    finally:
        engine.end()
    engine.trace.mix(engine.world.server.storage.version)
    return Outcome(
        plan=plan,
        violations=tuple(sorted((each for found in judges for each in found.violations), key=attrgetter("at"))),
        digest=engine.trace.digest,
        writes=tuple(str(each) for each in engine.calls),
        summary=dict(Counter(map(_summed, engine.done))),
        end=end_state(judge.state.all, judge.state.pd, judge.state.now),
        rested_at=rested_at,
        reads_per_hour=reads_per_hour,
        restarts=dict(judge.lives.made_anew - engine.hands.taken),
        conflict=bool(plan.conflicts) and not _all_at_rest(engine, plan),
        alerts=alerts,
    )


def _carry_out(engine: Engine, judge: Invariants, plan: Plan) -> Recorded | None:
    """The time of a plan; what is written after it is to be silent breaks O3. What alerts must do, of an outage."""
    if plan.outage:
        return OutageJudge(engine, plan.name, plan.outage, lambda what: judge.report("O8", what)).follow()
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
    written = len(engine.calls)
    engine.run(plan.budget - plan.silent_after)
    for each in engine.calls[written:]:
        if each.target.resource not in _OURS:
            judge.report("O3", f"{each} though the spec means what it meant (stage {each.stage or '-'})")
    return None


def _at_rest(engine: Engine, judge: Invariants, plan: Plan) -> bool:
    """Whether all is as the plan ends; where failover has the last word, substitutes serve for what is lost."""
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
    """Ten more resyncs, in which nothing may be written (O3), and little read (O9, I40); live reads in an hour."""
    written, read, idle = len(engine.calls), engine.reads, _all_at_rest(engine, plan)
    judge = judges[0]
    for _ in range(_RESYNCS):
        before = engine.reads
        engine.run(RESYNC)
        most = sum(
            _READS_AT_MOST
            + _reads_of_others(each.state)
            + _asks_who_answers(each.state)
            + len(_certificates(each.state))
            + bool(_certificates(each.state))
            + sum(len(each.state.pods(component)) for component in managed_components())
            for each in judges
        )
        if idle and engine.reads - before > most:
            judge.report("I40", f"{engine.reads - before} live reads in an idle resync, {most} are allowed")
    for each in engine.calls[written:]:
        # what is broken for good goes on to be told, such as each crash of a pod
        if each.stage == _RENEWS:
            continue
        if idle or each.target.resource not in _CLUSTERS:
            judge.report("O3", f"{each} in a resync that had nothing to do (stage {each.stage or '-'})")
    read, budget = engine.reads - read, _RESYNCS * sum(_reads_of_a_reconcile(each.state) for each in judges)
    if idle and read > budget * _MARGIN:
        judge.report("O9", f"{read} live reads in {_RESYNCS} idle resyncs, the budget is {budget}")
    return read * 3600 / (_RESYNCS * RESYNC)


def _reads_of_a_reconcile(state: State) -> float:
    """The live reads of an idle reconcile of a cluster, on average.

    With TLS that is the Secret of its clients each time, and all of them now and then.
    """
    parts = [each for each in managed_components() if state.pods(each)]
    asked = sum(len(state.pods(each)) for each in parts if asked_one_by_one(each))
    secrets = _certificates(state)
    of_secrets = 1 + len(secrets) * _LOOKS_AT_SECRETS / _RESYNCS if secrets else 0.0
    others = sum(profile(each).idle_reads for each in parts) + _asks_who_answers(state)
    return _READS_OF_A_RECONCILE + asked + others + of_secrets + _reads_of_others(state)


def _reads_of_others(state: State) -> int:
    return sum(reads * len(state.all(resource)) for resource, reads in _READS_OF_OTHERS.items())


def _certificates(state: State) -> list[Json]:
    """The Secrets with certificates."""
    return [each for each in state.all(SECRETS) if "tls.crt" in (each.get("data") or {})]


def _asks_who_answers(state: State) -> bool:
    """Whether PD has members in other clusters, one of which may have to stand in for its Service (I40, O9)."""
    return bool(status_of(state.cluster, "pd").get("peerMembers"))


def _summed(call: Call) -> str:
    """What O2 counts: the status of the cluster is left out, since it holds times."""
    if call.target.resource == str(TIDB_CLUSTERS):
        return "status"
    return _ID.sub("<id>", _MEMBER.sub(r"\1.\2", str(call)))
