"""The Leases of the shards: their names, and what they say beside who holds them (docs/adr/0010-shards-by-leases.md).

Shard 0 has the Lease that an undivided operator has, v1.6's name included, so that both compete for it. Into how many
shards its holder divides the clusters, a Lease says in an annotation, which counts only if that holder has written it:
who knows nothing of shards keeps the annotations of others.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import structlog

from kube.client import Client
from kube.errors import ApiError, Forbidden
from kube.leases import LeaseLock, LeaseRecord, record_of
from kube.objects import Object
from kube.resources import LEASES
from ports.clock import Clock
from ports.product import ANNOTATION_PREFIX
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

DIVISION = f"{ANNOTATION_PREFIX}/operator-shards"
"""The annotation by which the holder of a Lease says how it divides the objects: `tidb.pingcap.com/operator-shards`."""

WANTED = f"{ANNOTATION_PREFIX}/operator-shard-wanted-by"
"""The annotation by which a process with fewer shards asks the holder for this one."""


class Division(msgspec.Struct, frozen=True):
    """Into how many shards `holder` divides the clusters."""

    count: int
    holder: str

    @property
    def annotation(self) -> Mapping[str, str]:
        """What tells others, on the Lease."""
        return {DIVISION: msgspec.json.encode(self).decode()}


class Claim(msgspec.Struct, frozen=True):
    """`by` asks for a shard, as it has been held since the Lease changed hands for the `transitions`th time."""

    by: str
    transitions: int

    @property
    def annotation(self) -> Mapping[str, str]:
        """What tells the holder, on the Lease."""
        return {WANTED: msgspec.json.encode(self).decode()}


_SHARD = re.compile(r"\.shard-\d+$")

_DIVISIONS = msgspec.json.Decoder(Division)
_CLAIMS = msgspec.json.Decoder(Claim)


def lease_name(base: str, shard: int) -> str:
    """The Lease of a shard. Releases of Helm have no dot in what they append to `base`."""
    return f"{base}.shard-{shard}" if shard else base


def division_of(lease: Object) -> Division | None:
    """How the holder divides the clusters; None for one that does not, or does not tell. Raises ApiError."""
    try:
        found = _DIVISIONS.decode(lease.metadata.annotations.get(DIVISION, ""))
    except msgspec.MsgspecError:
        return None
    return found if found.holder == record_of(lease).holder else None


def claim_on(lease: Object) -> str:
    """Who asks for the shard of a Lease, and has not got it yet; else empty. Raises ApiError."""
    try:
        found = _CLAIMS.decode(lease.metadata.annotations.get(WANTED, ""))
    except msgspec.MsgspecError:
        return ""
    record = record_of(lease)
    return found.by if found.transitions == record.transitions and found.by != record.holder else ""


def ask_for(client: Client, namespace: str, name: str, claim: Claim, timeout: float) -> None:
    """Put a claim on a Lease that still is as claimed. Raises Conflict when it was renewed meanwhile, as `LeaseLock`.

    Nothing but the annotation changes: the holder finds it with its next renewal, which conflicts with this.
    """
    lock = LeaseLock(client, namespace, name, claim.annotation)
    record = lock.read(timeout)
    if record.holder and record.transitions == claim.transitions:
        lock.update(record, timeout)


@dataclass(slots=True)
class _Sighting:
    record: LeaseRecord
    since: float


class OtherDivisions:
    """Looks for processes that divide the clusters otherwise. For one thread at a time.

    A Lease that somebody holds counts until it was seen unchanged for its whole duration, by our clock (LE-11).
    """

    def __init__(self, client: Client, namespace: str, base: str, count: int, clock: Clock) -> None:
        """`base` is the name of the Lease of shard 0, `count` the number of our shards."""
        self._client, self._namespace, self._count, self._clock = client, namespace, count, clock
        self._base = base
        self._is_ours = re.compile(rf"{re.escape(base)}(?:{_SHARD.pattern})?$").match
        self._seen: dict[str, _Sighting] = {}

    def look(self) -> list[str]:
        """What keeps us from acting for a shard whose Lease we hold: one sentence each, from the server's newest state.

        Who may not list Leases has no shards beside it that could: an undivided operator goes on as v1.6 does.
        """
        try:
            return self._look()
        except Forbidden as error:
            if self._count == 1:
                _log.warning("whether others divide the clusters into shards cannot be seen", cause=str(error))
                return []
            return [f"Leases cannot be listed, which shards take: {error}"]
        except (ApiError, TransportError) as error:
            return [f"who else divides the clusters cannot be seen: {error}"]

    def _look(self) -> list[str]:
        leases = self._client.list_page(LEASES, self._namespace).items
        family = {lease.metadata.name: lease for lease in leases if self._is_ours(lease.metadata.name)}
        self._note(family.values())
        found = [self._trouble(lease) for _, lease in sorted(family.items())]
        base = family.get(self._base)
        division = division_of(base) if base else None
        if not any(found) and (division is None or division.count != self._count):
            found.append(f"Lease {self._base} has no holder that divides the clusters into {self._count}")
        return [each for each in found if each]

    def _note(self, leases: Iterable[Object]) -> None:
        for lease in leases:
            name, record = lease.metadata.name, record_of(lease)
            if name not in self._seen or self._seen[name].record != record:
                self._seen[name] = _Sighting(record, self._clock.now())

    def _trouble(self, lease: Object) -> str:
        seen, division = self._seen[lease.metadata.name], division_of(lease)
        is_over = self._clock.now() >= seen.since + seen.record.duration
        if not seen.record.holder or is_over or (division and division.count == self._count):
            return ""
        others = f"with --shards={division.count}" if division else "and knows nothing of shards"
        return f"Lease {lease.metadata.name} is held by {seen.record.holder} {others}"
