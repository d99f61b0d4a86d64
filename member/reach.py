"""How a round reaches the data plane of its cluster, certificates included.

The certificates are the user's Secret and read live: the operator caches no Secrets.
"""

import base64
from collections.abc import Mapping

from apis.identity import tls_enabled
from dataplane.errors import BadTlsMaterial, DataPlaneError
from dataplane.pd import PDClient
from dataplane.tidb import TiDBClient
from dataplane.tikv import TiKVClient
from dataplane.tls import TlsMaterial
from kube.errors import NotFound
from kube.resources import SECRETS
from member.naming import cluster_client_secret, pd_url, tidb_status_url, tikv_status_url
from member.round import Round

_BRIEFLY = 1.0
"""Seconds."""


def pd(round_: Round) -> PDClient:
    """The PD of the cluster: its Service, or the first of its peers that answers (dataplane-apis.md 2).

    Once `pd_beside` has found a member, that one. Raises BadTlsMaterial.
    """
    if round_.pd_url:
        return pd_member(round_, round_.pd_url)
    peers = [member.client_url for member in round_.status.pd.peer_members.values()]
    return round_.doors.dataplane.answering_pd([pd_url(round_.tc), *peers], _tls(round_))


def pd_beside(round_: Round) -> PDClient | None:
    """The first member that answers within a second, for when the Service led to one that does not.

    It is PD for the rest of the round. Raises BadTlsMaterial.
    """
    for member in round_.status.pd.members.values():
        found = pd_member(round_, member.client_url)
        try:
            found.members(timeout=_BRIEFLY)
        except DataPlaneError:
            continue
        round_.pd_url = member.client_url
        return found
    return None


def pd_member(round_: Round, url: str) -> PDClient:
    """One PD member, by the URL that it advertises. Raises BadTlsMaterial."""
    return round_.doors.dataplane.pd(url, _tls(round_))


def tikv(round_: Round, pod: str) -> TiKVClient:
    """One TiKV. Raises BadTlsMaterial."""
    return round_.doors.dataplane.tikv(tikv_status_url(round_.tc, pod), _tls(round_))


def tidb(round_: Round, pod: str) -> TiDBClient:
    """One TiDB server. Raises BadTlsMaterial."""
    return round_.doors.dataplane.tidb(tidb_status_url(round_.tc, pod), _tls(round_))


def _tls(round_: Round) -> TlsMaterial | None:
    if tls_enabled(round_.tc) and round_.tls is None:
        round_.tls = _read_tls(round_)
    return round_.tls


def _read_tls(round_: Round) -> TlsMaterial:
    name = cluster_client_secret(round_.tc)
    try:
        secret = round_.doors.client.get(SECRETS, name, round_.namespace).decode()
    except NotFound:
        raise BadTlsMaterial(
            f"Secret {round_.namespace}/{name} does not exist; spec.tlsCluster.enabled needs it, with ca.crt, tls.crt "
            "and tls.key"
        ) from None
    encoded: Mapping[str, str] = secret.get("data") or {}
    return TlsMaterial.from_secret({key: base64.b64decode(value) for key, value in encoded.items()})
