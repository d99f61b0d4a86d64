"""The Leases of the shards: their names and their annotations (docs/adr/0010-shards-by-leases.md).

Shard 0 uses the Lease of an undivided operator, with v1.6's name, so that both compete for it. An annotation of a Lease
records into how many shards its holder divides the clusters. It counts only if that holder wrote it, because an
operator without shards keeps foreign annotations.
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
"""The annotation in which a holder records its division: `tidb.pingcap.com/operator-shards`."""

WANTED = f"{ANNOTATION_PREFIX}/operator-shard-wanted-by"
"""The annotation by which a process with fewer shards claims this one from its holder."""


class Division(msgspec.Struct, frozen=True):
    """The number of shards into which `holder` divides the clusters."""

    count: int
    holder: str

    @property
    def annotation(self) -> Mapping[str, str]:
        """The annotation on the Lease."""
        return {DIVISION: msgspec.json.encode(self).decode()}


class Claim(msgspec.Struct, frozen=True):
    """The claim of the process `by` to a shard, valid for the holder after the given number of `transitions`."""

    by: str
    transitions: int

    @property
    def annotation(self) -> Mapping[str, str]:
        """The annotation on the Lease."""
        return {WANTED: msgspec.json.encode(self).decode()}


_SHARD = re.compile(r"\.shard-\d+$")

_DIVISIONS = msgspec.json.Decoder(Division)
_CLAIMS = msgspec.json.Decoder(Claim)


def lease_name(base: str, shard: int) -> str:
    """The Lease of a shard. Names that Helm derives from `base` contain no dot, so they cannot collide."""
    return f"{base}.shard-{shard}" if shard else base


def division_of(lease: Object) -> Division | None:
    """The division of the holder; None if it has none or does not record it. Raises ApiError."""
    try:
        found = _DIVISIONS.decode(lease.metadata.annotations.get(DIVISION, ""))
    except msgspec.MsgspecError:
        return None
    return found if found.holder == record_of(lease).holder else None


def claim_on(lease: Object) -> str:
    """The process that claims a Lease's shard and has not received it; else empty. Raises ApiError."""
    try:
        claim = _CLAIMS.decode(lease.metadata.annotations.get(WANTED, ""))
    except msgspec.MsgspecError:
        return ""
    record = record_of(lease)
    return claim.by if claim.transitions == record.transitions and claim.by != record.holder else ""


def ask_for(client: Client, namespace: str, name: str, claim: Claim, timeout: float) -> None:
    """Put a claim on an unchanged Lease. Raises Conflict if it was renewed meanwhile, and as `LeaseLock`.

    Changes only the annotation. The holder notices it at its next renewal, which conflicts with this write.
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
    """Finds processes that divide the clusters differently. Not thread-safe.

    A held Lease counts until it has stayed unchanged for its whole duration by the local clock (LE-11).
    """

    def __init__(self, client: Client, namespace: str, base: str, count: int, clock: Clock) -> None:
        """`base` is the Lease of shard 0, `count` this process's number of shards."""
        self._client, self._namespace, self._count, self._clock = client, namespace, count, clock
        self._base = base
        self._is_ours = re.compile(rf"{re.escape(base)}(?:{_SHARD.pattern})?$").match
        self._seen: dict[str, _Sighting] = {}

    def look(self) -> list[str]:
        """Reasons against acting for a held shard, one sentence each, from the newest state of the server.

        A process that may not list Leases is an undivided operator and continues like v1.6, because it has no shards.
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
