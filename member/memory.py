"""What one reconcile of a cluster leaves to the next, for as long as the process lives.

Nothing that protects data depends on it: an operator that has just started waits longer, asks more or repeats an event.

- Decisions and answers are reused while their inputs are unchanged (docs/adr/0012).
- Policies, quotas and servers change without an event, so a rejected write or setting is repeated after a pause.
- Monotonic timers (lifecycle.md F14, F44, I22), which count only while this process looks. A restart begins each again.
- The last findings about certificates, without the certificates and keys themselves.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Final, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec

from apis.cluster import Cluster
from apis.problem import Problem
from dataplane.log_backups import Flush
from kube.objects import Json, Object
from kube.reading import Readings
from kube.taken_names import TakenNames
from member.outcome import Done, Failed, Outcome, first_retry
from ports.ageing import Ageing, Entry
from ports.clock import Clock
from ports.pace import Pace

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

LONGEST: Final = 300.0
"""Seconds after which everything is asked and decided again, even on unchanged inputs."""


class KeptAnswer(Generic[T]):
    """The last answer to a question whose answer seldom changes. Not thread-safe."""

    def __init__(self) -> None:
        self._last: Entry[tuple[object, T]] | None = None

    def of(self, cause: object, clock: Clock, ask: Callable[[], T], lasts: float = LONGEST) -> T:
        """The answer given to an equal `cause` within the last `lasts` seconds, or else the result of `ask`.

        Raises what `ask` raises.
        """
        now = clock.now()
        last = self._last
        if last is None or last.value[0] != cause or not last.is_fresh(now, lasts):
            last = self._last = Entry((cause, ask()), now, now)
        return last.value[1]


@dataclass(frozen=True, slots=True)
class _Decision:
    seen: bytes
    readings: Readings
    outcomes: Mapping[str, Outcome]
    until: float


class Decided:
    """The last decision, if it was to do nothing. Not thread-safe."""

    def __init__(self) -> None:
        self._last: _Decision | None = None

    def on(self, seen: bytes, clock: Clock) -> Mapping[str, Outcome] | None:
        """The outcomes on the same answers of the data plane, if the caches are unchanged; otherwise None."""
        last = self._last
        if last is None or last.seen != seen or clock.now() >= last.until or not last.readings.still_hold():
            return None
        return last.outcomes

    def nothing_to_do(self, seen: bytes, readings: Readings, outcomes: Mapping[str, Outcome], clock: Clock) -> None:
        """Keep the outcomes with the inputs they depend on, if every stage is done."""
        if all(isinstance(outcome, Done) for outcome in outcomes.values()):
            # an outcome may depend on a time that no input shows, e.g. the end of a certificate
            holds_for = min(LONGEST, first_retry(outcomes.values()) or LONGEST)
            self._last = _Decision(seen, readings, dict(outcomes), clock.now() + holds_for)
        else:
            self.forget()

    def forget(self) -> None:
        """Decide again in the next reconcile."""
        self._last = None


class Designs:
    """What builders make of a cluster's spec, made once for each spec. Not thread-safe."""

    def __init__(self) -> None:
        self._source: tuple[object, ...] = ()
        self._made: dict[tuple[Hashable, ...], object] = {}

    def of(self, tc: Cluster, what: tuple[Hashable, ...], make: Callable[[], T], *, rechecks: bool) -> T:
        """The immutable result of `make`, which reads nothing but the cluster's metadata and spec, and `what`.

        With `rechecks`, the result is made each time; AssertionError if it differs although nothing has changed.
        """
        meta = tc.metadata
        source = tc.spec, meta.annotations, meta.labels, meta.counts_slots, meta.uid
        # the same spec is compared faster next time than an equal one
        self._source, self._made = source, self._made if self._source == source else {}
        if what in self._made and not rechecks:
            return cast("T", self._made[what])
        made = make()
        if self._made.setdefault(what, made) != made:
            raise AssertionError(f"two different designs of {what} for the same spec")
        return made


class Settled:
    """Cached objects that a comparison found equal to the desired ones. Not thread-safe.

    A cached object is immutable, so a comparison is repeated only for a new version or a new wish.
    """

    def __init__(self) -> None:
        # weak keys: an object that the cache drops is forgotten
        self._known: WeakKeyDictionary[Object, dict[Hashable, bytes]] = WeakKeyDictionary()

    def holds(self, comparison: Hashable, cached: Object, desired: Json) -> bool:
        """True if this comparison found this object equal to `desired`."""
        settled = self._known.get(cached, {}).get(comparison)
        return settled is not None and settled == msgspec.json.encode(desired)

    def note(self, comparison: Hashable, cached: Object, desired: Json) -> None:
        """Record that this comparison found the object equal to `desired`."""
        # the encoded text takes a tenth of the memory of the tree
        self._known.setdefault(cached, {})[comparison] = msgspec.json.encode(desired)


_RETRY = Pace(5.0, 60.0)
"""The pauses before a rejected write is tried again."""

_RESEND = 300.0
"""Seconds after which a rejected setting is sent again."""

_PATIENCE = 10.0
"""Seconds that an object gets to start before its events are read."""

_READ_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    wanted: bytes
    failed: Failed
    times: int


class Refusals:
    """Writes of components that the API server has rejected. Not thread-safe."""

    def __init__(self) -> None:
        self._known: Ageing[str, _Refusal] = Ageing()

    def standing(self, component: str, wanted: Callable[[], bytes], clock: Clock) -> Failed | None:
        """The rejection of the same wish, with the seconds that its pause still lasts; None once the write is due."""
        known = self._known.entry(component)
        # an outcome that depends on the time is decided again in each reconcile, so read it only for a rejection
        if known is None or clock.now() >= _due(known) or known.value.wanted != wanted():
            return None
        return Failed(known.value.failed.reason, known.value.failed.message, _due(known) - clock.now())

    def note(self, component: str, wanted: bytes, failed: Failed, clock: Clock) -> Failed:
        """Record a rejection; return it with the seconds until the next attempt, which double up to a minute."""
        known = self._known.get(component)
        times = known.times + 1 if known is not None and known.wanted == wanted else 1
        self._known.note(component, _Refusal(wanted, failed, times), clock.now())
        return Failed(failed.reason, failed.message, _RETRY.after(times))

    def forget(self, component: str) -> None:
        """Forget the rejection of a component, whose write was accepted."""
        self._known.drop(component)


def _due(known: Entry[_Refusal]) -> float:
    return known.at + _RETRY.after(known.value.times)


class AcceptedSettings:
    """Settings sent to servers that cannot be asked for them, or that rejected them. Not thread-safe."""

    def __init__(self) -> None:
        self._sent: Ageing[str, tuple[Hashable, float]] = Ageing()

    def is_new(self, target: str, setting: Hashable, clock: Clock) -> bool:
        """True if `target` was last sent another setting, or rejected this one more than five minutes ago."""
        known = self._sent.entry(target)
        return known is None or known.value[0] != setting or not known.is_fresh(clock.now(), known.value[1])

    def accepted(self, target: str, setting: Hashable, clock: Clock) -> None:
        """Record that `target` has accepted the setting."""
        self._sent.note(target, (setting, inf), clock.now())

    def refused(self, target: str, setting: Hashable, clock: Clock) -> None:
        """Record that `target` has rejected the setting."""
        self._sent.note(target, (setting, _RESEND), clock.now())

    def forget(self, target: str) -> None:
        """Forget a server that can now be asked for its settings."""
        self._sent.drop(target)


class Complaints:
    """The events of Kubernetes about objects that do not start. Not thread-safe."""

    def __init__(self) -> None:
        self._known: Ageing[str, KeptAnswer[str]] = Ageing(_FORGOTTEN)

    def of(self, key: str, read: Callable[[], str], clock: Clock) -> str:
        """The last complaint about `key`, empty without one.

        `read` is called after the object had ten seconds to start, and then every thirty seconds.
        """
        known = self._known.touch(key, KeptAnswer[str], clock.now())
        return known.value.of("", clock, read, _READ_EVERY) if known.at - known.since >= _PATIENCE else ""


LONGEST_GAP = 120.0
"""The longest time in seconds between two looks at the same trouble; back-off may take 100."""

_FORGOTTEN = 3600.0
"""Seconds without a look after which a stopwatch starts again, and complaints are forgotten."""


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """The time since a first look: `since` is for messages, `seconds` has elapsed."""

    since: datetime
    seconds: float


def _look(starts: Ageing[K, datetime], key: K, clock: Clock) -> Stopwatch:
    """The time since the first look at `key`; the first look starts the stopwatch."""
    start = starts.touch(key, clock.wall, clock.now())
    return Stopwatch(start.value, start.at - start.since)


class FailureTimers:
    """Stopwatches of troubles that have to last without a break. Not thread-safe."""

    def __init__(self) -> None:
        self._starts: dict[str, Ageing[str, datetime]] = {}

    def update(self, kind: str, keys: Collection[str], clock: Clock) -> Mapping[str, Stopwatch]:
        """Record that exactly `keys` have trouble of this kind now.

        The timers of other keys end. A timer that was not updated for `LONGEST_GAP` starts again.
        """
        starts = self._starts.setdefault(kind, Ageing(LONGEST_GAP))
        for key in self.known(kind):
            if key not in keys:
                starts.drop(key)
        return {key: _look(starts, key, clock) for key in keys}

    def known(self, kind: str) -> Collection[str]:
        """The keys of the last update."""
        return list(self._starts.get(kind, ()))

    def reset(self, kind: str) -> None:
        """End all timers of a kind, because the trouble cannot be observed now."""
        self._starts.pop(kind, None)


class Stopwatches:
    """Stopwatches by purpose and key, e.g. ("eviction", "basic-tikv-1"). Not thread-safe."""

    def __init__(self) -> None:
        self._starts: Ageing[tuple[str, str], datetime] = Ageing(_FORGOTTEN)

    def look(self, what: str, key: str, clock: Clock) -> Stopwatch:
        """The time since the first look at `key`; the first look starts the stopwatch."""
        return _look(self._starts, (what, key), clock)

    def known(self, what: str) -> list[str]:
        """The keys with a running stopwatch."""
        return [key for kind, key in self._starts if kind == what]

    def forget(self, what: str, key: str) -> None:
        """Let the next look start the stopwatch again."""
        self._starts.drop((what, key))

    def is_due(self, what: str, key: str, period: float, clock: Clock) -> bool:
        """True at most once in `period` seconds, beginning with the first call."""
        is_new = self._starts.entry((what, key), clock.now()) is None
        if not is_new and self.look(what, key, clock).seconds < period:
            return False
        self.forget(what, key)
        self.look(what, key, clock)
        return True


@dataclass(slots=True)
class Rolls:
    """The rolling restarts of a cluster, by component."""

    causes: dict[str, str] = field(default_factory=dict)
    """Sentences about what has changed; none for a roll that an earlier process began."""
    announced: dict[str, str] = field(default_factory=dict)
    """The pods whose restart the last event announced."""
    begins: dict[str, tuple[str, datetime | None]] = field(default_factory=dict)
    """By kind, the step that was under way when this process began, and since when."""

    def begin(self, component: str, cause: str) -> None:
        """Record that a new pod template is written, and why."""
        self.causes[component] = cause
        self.announced.pop(component, None)

    def end(self, component: str) -> None:
        """Record that all pods run the newest template."""
        self.causes.pop(component, None)
        self.announced.pop(component, None)


@dataclass(slots=True)
class ClusterMemory:
    """The memory of one TidbCluster or DMCluster. Only the worker that reconciles the cluster uses it.

    After each field: what a restart of the operator costs, and what the field saves (bench/memories.json) if it is no
    evidence.
    """

    failure_timers: FailureTimers = field(default_factory=FailureTimers)
    """Failover periods begin again."""
    stopwatches: Stopwatches = field(default_factory=Stopwatches)
    """Limits such as the one of a leader eviction begin again. Without their periods (`is_due`), five minutes at rest
    cost 51 requests to servers, not 42."""
    rolls: Rolls = field(default_factory=Rolls)
    """One event of a restart is repeated; the cause of the roll is no longer named."""
    refusals: Refusals = field(default_factory=Refusals)
    """One rejected write is repeated for each component. Without it ten minutes of a refused roll cost 23 patches, not
    13."""
    accepted_settings: AcceptedSettings = field(default_factory=AcceptedSettings)
    """Servers are asked once more. Without it five minutes at rest, with labels of TiDB and TiProxy, cost 72 requests,
    not 52."""
    complaints: Complaints = field(default_factory=Complaints)
    """Events of Kubernetes are read once more, after ten seconds. Without it pods over quota cost 107 reads in five
    minutes, not 36."""
    taken_names: TakenNames = field(default_factory=TakenNames)
    """Objects that no cache shows are read once more."""
    settled: Settled = field(default_factory=Settled)
    """Objects are compared once more. Without it a reconcile in a roll costs 5,000 calls, not 4,000."""
    designs: Designs = field(default_factory=Designs)
    """Desired objects are built once more. Without it a reconcile in a roll costs 5,200 calls, not 4,000."""
    decided: Decided = field(default_factory=Decided)
    """All stages decide once more. Without it a reconcile at rest costs 3,700 calls, not 1,100."""
    location_labels: KeptAnswer[tuple[str, ...]] = field(default_factory=KeptAnswer)
    """PD is asked again for its location labels. Without it five minutes at rest cost 51 requests, not 42."""
    bucket_keys: KeptAnswer[tuple[str, str, str] | None] = field(default_factory=KeptAnswer)
    """The Secret of TiCI's bucket is read again. Without it five minutes at rest cost 10 reads, not 1."""
    unheeded: KeptAnswer[Mapping[str, Sequence[Problem]]] = field(default_factory=KeptAnswer)
    """Fields without effect are sought once more. Without answers a reconcile at rest costs 2,100 calls, not 1,100."""
    flushes: Ageing[str, Flush | None] = field(default_factory=lambda: Ageing(_FORGOTTEN))
    """The flushes of log backups by the UIDs of pods, None between two attempts. Lost: one more flush."""
    evicted_stores: set[int] = field(default_factory=set)
    """The stores that this process evicts. Lost: an eviction without a mark on its pod is reported, and not ended."""
    evicted_by_others: set[int] = field(default_factory=set)
    """The stores whose eviction by another client was reported in an event. Lost: one event is repeated."""
    without_effect: frozenset[str] = frozenset()
    """The settings of PD that an event has named as without effect. Lost: the event is repeated."""
    silent_stores: dict[int, int] = field(default_factory=dict)
    """PD's time of the last heartbeat of stores that do not answer. Lost: they hold up restarts until the next one."""
    ddl_marks: Mapping[str, str] = field(default_factory=dict)
    """The last seen or written annotations about paused DDL. Lost: they are read from the cache."""
    own_changes: dict[str, str] = field(default_factory=dict)
    """By component, the operator's own change that waits. Lost: the condition stays until the next comparison."""
    made: dict[str, str] = field(default_factory=dict)
    """The UIDs of the StatefulSets that this process created, by name. Lost: foreign edits are sought in them, too."""
    replaced_in_vain: dict[str, bytes] = field(default_factory=dict)
    """The desired volumes of a component whose replacement produced other ones, by its name. Lost: one more attempt."""
    remade_claims: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Claims deleted for their recreation, by name: the UIDs of StatefulSet and claim, and the requested class and
    size. Lost: the claim is checked as if it had never been recreated."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One Secret: when its certificates are valid, and `trouble`, a sentence, if they can never be used.

    `key` names the entry of the Secret whose certificate ends first.
    """

    trouble: str = ""
    begins: datetime | None = None
    ends: datetime | None = None
    key: str = ""


@dataclass(slots=True)
class _Page:
    read_at: float
    changes: int
    findings: Mapping[str, Finding]
    reported: str = ""


@dataclass(slots=True)
class CertificateBook:
    """The findings of this process, by cluster and Secret.

    Only the worker of a cluster writes its page; threads such as the one of the metrics may read it meanwhile. Without
    it five minutes at rest cost 50 reads of Secrets, not 14 (bench/memories.json); a restart costs one reading.
    """

    LOOK_AGAIN: Final = 300.0
    """Seconds until Secrets without trouble are read again."""

    LOOK_AGAIN_AT_TROUBLE: Final = 10.0
    """Seconds until Secrets are read again if one has trouble."""

    _pages: dict[str, _Page] = field(default_factory=dict)

    def is_due(self, cluster: str, secrets: frozenset[str], now: float, every: float, *, changes: int) -> bool:
        """True if the Secrets of a cluster should be read: `every` seconds, and after each change.

        `changes` is the number of changes so far (`kube.secret_reads`).
        """
        page = self._pages.get(cluster)
        if page is None or page.findings.keys() != secrets or page.changes != changes:
            return True
        return now - page.read_at >= every

    def note(self, cluster: str, findings: Mapping[str, Finding], now: float, *, changes: int) -> None:
        """Record the findings, and the number of changes before the Secrets were read."""
        before = self._pages.get(cluster)
        self._pages[cluster] = _Page(now, changes, findings, before.reported if before else "")

    def findings(self, cluster: str) -> Mapping[str, Finding]:
        """The last findings by the name of the Secret; empty before the first reading."""
        page = self._pages.get(cluster)
        return page.findings if page else {}

    def is_news(self, cluster: str, reason: str) -> bool:
        """True if `reason` differs from the one of the last call, which it replaces."""
        page = self._pages.get(cluster)
        if page is None or page.reported == reason:
            return False
        page.reported = reason
        return True

    def forget(self, cluster: str) -> None:
        """Forget a cluster that was deleted or uses no certificates."""
        self._pages.pop(cluster, None)
