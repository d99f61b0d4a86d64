"""Authorities and certificates as users of a TLS cluster make them (objects.md 9.1)."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import trustme

from kube.objects import Json

KEYS = ("ca.crt", "tls.crt", "tls.key")
TODAY = datetime(2026, 1, 1, tzinfo=UTC)
"""The day on which fake clocks begin."""
COMMON_NAME = "TiDB"
CLIENT = "cluster-client"


@dataclass(frozen=True, slots=True)
class Pair:
    """The data of one Secret, as texts."""

    ca: bytes
    cert: bytes
    key: bytes
    checks_names: bool = True

    def secret(self, name: str, keys: Iterable[str] = KEYS) -> Json:
        """A Secret with these of the keys."""
        parts = dict(zip(KEYS, (self.ca, self.cert, self.key), strict=True))
        data = {key: base64.b64encode(parts[key]).decode() for key in keys}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


class Authority:
    """A CA, whose own certificate outlives all that it signs."""

    def __init__(self) -> None:
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)

    @property
    def ca(self) -> bytes:
        """Its certificate, PEM."""
        return self._ca.cert_pem.bytes()

    def pair(
        self,
        *hosts: str,
        begins: datetime = TODAY - timedelta(days=1),
        ends: datetime = TODAY + timedelta(days=365),
        common_name: str = COMMON_NAME,
        trusts: bytes = b"",
    ) -> Pair:
        """A certificate for some hosts, in a Secret that trusts this authority, or others."""
        issued = self._ca.issue_cert(
            *hosts, common_name=common_name, not_before=begins, not_after=ends, key_type=trustme.KeyType.ECDSA
        )
        cert = b"".join(each.bytes() for each in issued.cert_chain_pems)
        return Pair(trusts or self.ca, cert, issued.private_key_pem.bytes())

    def of(
        self,
        component: str,
        name: str = "basic",
        namespace: str = "default",
        *,
        begins: datetime = TODAY - timedelta(days=1),
        ends: datetime = TODAY + timedelta(days=365),
        trusts: bytes = b"",
    ) -> Pair:
        """The certificate of a component of a cluster, with all names that the documentation requires."""
        return self.pair(*hosts_of(component, name, namespace), begins=begins, ends=ends, trusts=trusts)


def hosts_of(component: str, name: str = "basic", namespace: str = "default") -> tuple[str, ...]:
    """The names by which a component is known (objects.md 9.1)."""
    bases = (f"{name}-{component}", f"{name}-{component}-peer", f"*.{name}-{component}-peer")
    endings = ("", f".{namespace}", f".{namespace}.svc")
    return (*(base + ending for base in bases for ending in endings), "127.0.0.1", "::1")


def secret_name(component: str, name: str = "basic") -> str:
    """The Secret of a component, or of the clients of the cluster."""
    return f"{name}-{component}-secret" if component == CLIENT else f"{name}-{component}-cluster-secret"
