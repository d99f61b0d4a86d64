"""How a round reaches the data plane of its cluster, certificates included.

The certificates are the user's Secret and read live: the operator caches no Secrets.
"""

import base64
from collections.abc import Mapping

from apis.identity import tls_enabled
from dataplane.errors import BadTlsMaterial
from dataplane.pd import PDClient
from dataplane.tidb import TiDBClient
from dataplane.tls import TlsMaterial
from kube.errors import NotFound
from kube.resources import SECRETS
from member.naming import cluster_client_secret, pd_url, tidb_status_url
from member.round import Round


def pd(round_: Round) -> PDClient:
    """The PD of the cluster: its Service, or the first of its peers that answers (dataplane-apis.md 2).

    Raises BadTlsMaterial.
    """
    peers = [member.client_url for member in round_.status.pd.peer_members.values()]
    return round_.doors.dataplane.answering_pd([pd_url(round_.tc), *peers], _tls(round_))


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
