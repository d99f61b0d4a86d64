"""The Lease object: reading it, and writing it without losing what others keep in it (LE-2, LE-3, LE-23)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from kube.client import Client
from kube.objects import Json, Object
from kube.resources import LEASES


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says. An empty holder is nobody; times are kept as they were read."""

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


class LeaseLock:
    """One Lease, over one client."""

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
        """Read the Lease. Raises NotFound, other ApiErrors, TransportError."""
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
        """Replace the Lease that was last read or written. Raises Conflict when it has changed since, ApiErrors."""
        if self._last is None:
            raise RuntimeError("a Lease is updated only after it was read or created")
        body = self._last.decode()
        body["spec"] = (body.get("spec") or {}) | _spec(record)
        meta: Json = body["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), **self._annotations}
        path = LEASES.path(self._namespace, self._name)
        return self._remember(self._client.request("PUT", path, body=body, timeout=timeout).body)

    def _remember(self, raw: bytes) -> LeaseRecord:
        self._last = Object(raw, LEASES.api_version, LEASES.kind)
        return record_of(self._last)


def record_of(lease: Object) -> LeaseRecord:
    """What a Lease says."""
    spec = lease.decode().get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        duration=spec.get("leaseDurationSeconds") or 0,
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )


def micro_time(moment: datetime) -> str:
    """A time as Leases carry it: RFC 3339 in UTC with six decimals."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(record: LeaseRecord) -> Json:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration,
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }
