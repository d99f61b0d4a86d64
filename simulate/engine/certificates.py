"""The certificate Secrets of the clusters in plans (objects.md 9.1), from one CA.

Their bytes differ between processes, so no comparison depends on them.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache

import trustme

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from meta.certificate_needs import all_hosts, needs

_FROM, _TO = datetime(2025, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC)
"""Longer than any plan, even if its clock jumps."""

KEYS = ("ca.crt", "tls.crt", "tls.key")
"""The keys of such a Secret."""


def secrets(cluster: Json, namespace: str, ends: datetime = _TO) -> Iterator[Json]:
    """The Secrets of a cluster with the given end; none without TLS."""
    tc = with_defaults(decode(cluster | {"metadata": cluster["metadata"] | {"namespace": namespace}}, TidbCluster))
    for name, need in needs(tc).items():
        parts = zip(KEYS, _pair(all_hosts(tc, need), ends), strict=True)
        data = {key: base64.b64encode(part).decode() for key, part in parts}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


@cache
def _authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@cache
def _pair(hosts: tuple[str, ...], ends: datetime) -> tuple[bytes, bytes, bytes]:
    """CA, certificate and key as PEM. All have one common name, which PD, TiKV and TiDB can require."""
    issued = _authority().issue_cert(
        *hosts, common_name="TiDB", not_before=_FROM, not_after=ends, key_type=trustme.KeyType.ECDSA
    )
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    return _authority().cert_pem.bytes(), chain, issued.private_key_pem.bytes()
