"""Reads and writes of a Lease that keep foreign fields (LE-2, LE-3, LE-23)."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

import msgspec

from kube.client import Client, read_object, readable
from kube.errors import InternalError, Status
from kube.objects import Json, Object
from kube.resources import LEASES
from ports.clock import Clock
from ports.fencing import LeaseExpired
from ports.structs import UNREADABLE


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The record in a Lease. An empty holder means that it is free; times stay as read."""

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


class LeaseLock:
    """One Lease, through one client."""

    def __init__(
        self, client: Client, namespace: str, name: str, annotations: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`annotations` are written with each record."""
        self._annotations = annotations
        self._client = client
        self._namespace = namespace
        self._name = name
        self._last: Object | None = None

    @property
    def object(self) -> Object | None:
        """The Lease as last read or written."""
        return self._last

    def read(self, timeout: float) -> LeaseRecord:
        """Read the Lease. Raises NotFound, other ApiErrors (also for an answer that is not a Lease), TransportError."""
        path = LEASES.path(self._namespace, self._name)
        return self._remember(self._client.request("GET", path, timeout=timeout).body)

    def create(self, record: LeaseRecord, timeout: float) -> LeaseRecord:
        """Create the Lease. Raises AlreadyExists, other ApiErrors, TransportError."""
        body: Json = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "annotations": dict(self._annotations),
            },
            "spec": _spec(record),
        }
        path = LEASES.path(self._namespace)
        return self._remember(self._client.request("POST", path, body=body, timeout=timeout).body)

    def update(self, record: LeaseRecord, timeout: float) -> LeaseRecord:
        """Replace the Lease as last read or written. Raises Conflict if it has changed since, ApiErrors."""
        if self._last is None:
            raise RuntimeError("a Lease is updated only after it was read or created")
        body = self._last.decode()
        body["spec"] = (body.get("spec") or {}) | _spec(record)
        meta: Json = body["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), **self._annotations}
        path = LEASES.path(self._namespace, self._name)
        return self._remember(self._client.request("PUT", path, body=body, timeout=timeout).body)

    def _remember(self, raw: bytes) -> LeaseRecord:
        lease = read_object(raw, LEASES)
        if lease.metadata.name != self._name:
            raise InternalError(Status(code=500, message=f"the server answered the Lease {lease.key!r}"), self._name)
        # an unreadable Lease must not become the base of the next update
        record = record_of(lease)
        with readable(lease.key):
            lease.decode()
        self._last = lease
        return record


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    spec: _Spec | None = None


def record_of(lease: Object) -> LeaseRecord:
    """The record in a Lease. Raises ApiError if it cannot be read."""
    try:
        spec = lease.decode_as(_Lease).spec or _Spec()
    except UNREADABLE as error:
        raise InternalError(Status(code=500, message=f"not readable: {error}"), f"Lease {lease.key}") from error
    return LeaseRecord(
        holder=spec.holder_identity or "",
        duration=spec.lease_duration_seconds or 0,
        acquired=spec.acquire_time or "",
        renewed=spec.renew_time or "",
        transitions=spec.lease_transitions or 0,
    )


def micro_time(moment: datetime) -> str:
    """A time in a Lease's format: RFC 3339 in UTC with six decimals."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(record: LeaseRecord) -> Json:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration,
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }


class LocalLease:
    """A fence: writing is allowed while this process leads and its last renewal is younger than the lease.

    Only the monotonic clock counts, from the moment the renewal was *sent*: no other process can have seen the renewal
    earlier, so none can take over before the lease ends here.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._valid_until = float("-inf")

    def extend(self, sent: float, duration: float) -> None:
        """Record that a renewal for `duration` seconds, sent at `sent`, was accepted."""
        with self._lock:
            self._valid_until = sent + duration

    def drop(self) -> None:
        """Stop leading."""
        with self._lock:
            self._valid_until = float("-inf")

    def is_valid(self) -> bool:
        """True while no other process can be the leader."""
        with self._lock:
            return self._clock.now() < self._valid_until

    def check(self) -> None:
        """Return when writing is allowed. Raises LeaseExpired."""
        if not self.is_valid():
            raise LeaseExpired("this process does not hold a valid leader lease")
