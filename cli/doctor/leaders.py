"""Leaders, as recorded in Leases: an operator holds one, or one for each shard of its clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from cli.doctor.facts import Facts, name_of
from controller_manager.flags import PROGRAM
from controllers.other_operators import Scope, scope_of
from informers.selectors import SelectorError
from kube.leases import record_of
from kube.objects import Object
from kube.resources import LEASES
from kube.shard_leases import division_of
from kube.sharding import shard_of

_OVERDUE = 2
"""The number of missed lease durations after which an operator counts as gone."""

_SKEW = timedelta(seconds=30)
"""The tolerated difference between this clock and the operator's."""

_SHARD = ".shard-"


@dataclass(frozen=True, slots=True)
class Leader:
    """A leading operator.

    `lease` is the undivided operator's, or shard 0's. `scope` is its set of clusters, None if the Lease does not record
    it, as in v1.6. They are divided into `count` shards, of which those in `held` have a holder.
    """

    lease: str
    scope: Scope | None
    held: frozenset[int]
    count: int = 1

    def covers(self, cluster: Object) -> bool:
        """True if it manages a cluster."""
        try:
            return self.scope is None or self.scope.covers(cluster)
        except SelectorError:
            return True

    def lacks(self, cluster: Object) -> str:
        """The missing Lease for a cluster, or empty."""
        shard = shard_of(cluster.key, self.count)
        return "" if shard in self.held else f"{self.lease}{_SHARD}{shard}" if shard else self.lease

    @property
    def description(self) -> str:
        """Its clusters, in words."""
        if self.scope is None:
            return "does not say which"
        where = f"namespace {self.scope.namespace}" if self.scope.namespace else "all namespaces"
        return f"{where}, selector {self.scope.selector!r}" if self.scope.selector else where


def leases(facts: Facts) -> Sequence[Object]:
    """The Leases of operators, held or not."""
    return [Object(msgspec.json.encode(lease)) for lease in facts.all(LEASES) if name_of(lease).startswith(PROGRAM)]


def leaders(facts: Facts) -> Sequence[Leader]:
    """The operators that renew a Lease."""
    held: dict[str, list[Object]] = {}
    for lease in leases(facts):
        if _is_renewed(facts, lease):
            held.setdefault(lease.key.partition(_SHARD)[0], []).append(lease)
    return [_leader(base, found) for base, found in held.items()]


def _is_renewed(facts: Facts, lease: Object) -> bool:
    record = record_of(lease)
    overdue = _OVERDUE * timedelta(seconds=record.duration) + _SKEW
    return bool(record.holder) and not facts.lasts(record.renewed, overdue)


def _leader(base: str, held: Sequence[Object]) -> Leader:
    counts = (division.count for lease in held if (division := division_of(lease)) is not None)
    scopes = (scope for lease in held if (scope := scope_of(lease)) is not None)
    numbers = (lease.key.partition(_SHARD)[2] or "0" for lease in held)
    shards = frozenset(int(number) for number in numbers if number.isdecimal())
    return Leader(base, next(scopes, None), shards, max(counts, default=1))
