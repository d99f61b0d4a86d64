"""Detection of other operators that manage the same clusters.

Two operators in different namespaces hold different Leases, and both lead. Each operator watches Leases with the name
of its own in other namespaces. A Lease that is renewed belongs to a running operator, and an annotation lists the
clusters that this operator manages. Without other operators there are no events and no requests. The operator reports
a conflict and continues to work, because only the user can decide which operator to stop.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

import msgspec
import structlog

from controllers.conditions import READY, ConditionValue
from controllers.informing import Informer, Informers
from controllers.kind import Context
from informers.handlers import ResourceEventHandler, ResourceEventHandlerFuncs
from informers.selectors import SelectorError, parse_selector
from informers.tombstones import LastKnown, last_known_object
from kube.events import WARNING
from kube.leader_election import Recorder
from kube.leases import LeaseRecord, record_of
from kube.objects import Json, Object, condition_of
from kube.resources import LEASES
from ports.clock import Clock

C = TypeVar("C", bound=Context)

_Conditions: TypeAlias = Callable[[C, datetime], Mapping[str, ConditionValue]]

log = structlog.get_logger(__name__)

OPERATOR_CONFLICT = "OperatorConflict"
"""The condition of a cluster that more than one operator manages; absent until that happens for the first time."""

SCOPE = "tidb.pingcap.com/operator-scope"
"""The annotation of a Lease that describes the clusters of its holder (`Scope`)."""

_REASON, _RESOLVED = "AnotherOperator", "OneOperator"

_OVERDUE = 2
"""The number of Lease durations without a renewal after which an operator counts as gone."""


_NEWCOMER = 15.0
"""Seconds after its start in which an operator keeps a stored condition: it may not have seen every renewal."""


class Scope(msgspec.Struct, frozen=True):
    """The clusters of an operator: those in a namespace (empty: in all) that a label selector matches."""

    namespace: str = ""
    selector: str = ""

    @property
    def annotation(self) -> Mapping[str, str]:
        """The annotation of the operator's own Lease, for other operators."""
        return {SCOPE: msgspec.json.encode(self).decode()}

    def covers(self, cluster: Object) -> bool:
        """True if the operator manages the cluster. Raises SelectorError."""
        meta = cluster.metadata
        return self.namespace in ("", meta.namespace) and parse_selector(self.selector).matches(meta.labels)


_SCOPES = msgspec.json.Decoder(Scope)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A running operator: when its Lease expires by the local clock, and its scope; None if the Lease has none."""

    until: float
    scope: Scope | None


class OtherOperators:
    """The other running operators. `me` is namespace and name of this operator's Lease, `scope` its clusters."""

    def __init__(self, me: str, scope: Scope, clock: Clock, recorder: Recorder) -> None:
        self._me, self._scope, self._clock, self._recorder = me, scope, clock, recorder
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        self._leases: Informer | None = None
        self._began = clock.now()

    def watch(self, leases: Informers) -> None:
        """Watch the Leases of `leases`."""
        self._leases, self._began = leases.informer_for(LEASES), self._clock.now()
        self._leases.add_event_handler(self.handler)

    @property
    def handler(self) -> ResourceEventHandler:
        """The handler of Leases. It ignores the initial list: a Lease may remain after its operator is gone."""
        return ResourceEventHandlerFuncs(on_update=self._updated, on_delete=self._deleted)

    def managing(self, cluster: Object) -> tuple[str, ...]:
        """The other operators that manage a cluster, each as namespace and name of its Lease."""
        now = self._clock.now()
        with self._lock:
            seen = dict(self._seen)
        return tuple(sorted(who for who, each in seen.items() if now < each.until and self._covers(each, cluster)))

    def condition(self, cluster: Object) -> Mapping[str, ConditionValue]:
        """The condition OperatorConflict of a cluster; a change is also logged and recorded as an event.

        The stored condition is kept while this operator cannot see other Leases, or has just started to.
        """
        stored = _stored(cluster)
        if self._leases is None or not self._leases.has_synced():
            return {OPERATOR_CONFLICT: (True, _REASON, stored)} if stored else {}
        others = self.managing(cluster)
        self._tell(cluster, others)
        if others:
            return {OPERATOR_CONFLICT: (True, _REASON, self._message(others))}
        if stored and self._clock.now() - self._began < _NEWCOMER:
            return {OPERATOR_CONFLICT: (True, _REASON, stored)}
        if stored:
            return {OPERATOR_CONFLICT: (False, _RESOLVED, "one operator manages this cluster")}
        return {}

    def telling(self, conditions: _Conditions[C]) -> _Conditions[C]:
        """The function `conditions`, extended by OperatorConflict, whose message `kubectl get` also shows in STATUS."""

        def values(ctx: C, now: datetime) -> Mapping[str, ConditionValue]:
            found = {**conditions(ctx, now), **self.condition(ctx.owner)}
            is_contested, _, who = found.get(OPERATOR_CONFLICT, (False, "", ""))
            if is_contested:
                holds, reason, message = found[READY]
                found[READY] = holds, reason, f"{message}; {who}"
            return found

        return values

    def _message(self, others: tuple[str, ...]) -> str:
        """The message about a conflict. All operators write the same, or they would overwrite each other forever."""
        return (
            f"{' and '.join(sorted((self._me, *others)))} manage this cluster; stop all but one, "
            "or give each clusters of its own with -selector or -cluster-scoped=false"
        )

    def _tell(self, cluster: Object, others: tuple[str, ...]) -> None:
        # clusters of two kinds may have the same name
        uid = cluster.metadata.uid
        with self._lock:
            before = self._told.get(uid, ())
            if before == others:
                return
            self._told.pop(uid, None)
            if others:
                self._told[uid] = others
        if others:
            log.error("another operator manages this cluster", cluster=cluster.key, me=self._me, others=list(others))
            self._recorder.event(cluster, WARNING, _REASON, self._message(others))
        else:
            log.info("no other operator manages this cluster now", cluster=cluster.key)

    def _covers(self, other: _Seen, cluster: Object) -> bool:
        """True if `other` manages the cluster.

        v1.6 writes no scope. It counts as managing everything, unless this operator has a selector: then the user has
        divided the clusters between the operators.
        """
        if other.scope is None:
            return not self._scope.selector
        try:
            return other.scope.covers(cluster)
        except SelectorError:
            return True

    def _updated(self, old: Object, new: Object) -> None:
        was, now, who = record_of(old), record_of(new), new.key
        if not now.holder:
            self._forget(who)
        elif _renewal(was) != _renewal(now):
            until = self._clock.now() + _OVERDUE * max(now.duration, 1)
            scope = scope_of(new)
            with self._lock:
                is_new = who not in self._seen
                self._seen[who] = _Seen(until, scope)
            if is_new:
                log.warning("another operator is at work", me=self._me, other=who, scope=str(scope or "unknown"))

    def _deleted(self, lease: LastKnown) -> None:
        if gone := last_known_object(lease):
            self._forget(gone.key)

    def _forget(self, who: str) -> None:
        with self._lock:
            self._seen.pop(who, None)


def _renewal(record: LeaseRecord) -> tuple[str, str]:
    return record.holder, record.renewed


def scope_of(lease: Object) -> Scope | None:
    """The scope in the annotation of a Lease; None if it has none, like the Leases of v1.6."""
    try:
        return _SCOPES.decode(lease.metadata.annotations.get(SCOPE, ""))
    except msgspec.MsgspecError:
        return None


def _stored(cluster: Object) -> str:
    """The message of the stored condition while it is True, else empty."""
    status: Json = cluster.decode().get("status") or {}
    mine = condition_of(status.get("conditions") or [], OPERATOR_CONFLICT)
    return str(mine.get("message") or _REASON) if mine.get("status") == "True" else ""
