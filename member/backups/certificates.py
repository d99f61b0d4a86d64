"""The TLS certificates in the pods of Jobs: the user's Secrets, mounted as files (backup.md 3.11).

The operator checks them before it creates a Job: a pod with a missing Secret would wait without any report.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apis.backup_shared import TiDBAccessConfig
from apis.identity import skips_sql_authority, speaks_sql_tls, tls_enabled
from apis.tidbcluster import TidbCluster
from member.backups.environment import BadJob, Secrets
from member.naming import cluster_client_secret

_KEYS = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Client:
    """A TLS client certificate: the program's arguments, the Secret, its volume and its mount path."""

    args: Sequence[str]
    secret: str
    volume: str
    path: str
    keys: Sequence[str] = _KEYS


def clients(tc: TidbCluster | None, access: TiDBAccessConfig | None) -> list[Client]:
    """The certificates of a Job.

    With a cluster and `access`: for components and SQL; without a cluster only for SQL.
    """
    found: list[Client] = []
    if tc is not None and tls_enabled(tc):
        found.append(_client("cluster-client-tls", cluster_client_secret(tc), "--cluster-tls=true"))
    if access is None:
        return found
    secret = access.tls_client_secret_name or ""
    if tc is None and secret:
        found.append(_client("tidb-client-tls", secret, "--client-tls=true"))
    elif tc is not None and speaks_sql_tls(tc):
        secret = secret or f"{tc.metadata.name}-tidb-client-secret"
        trusts_any = ["--skipClientCA=true"] if skips_sql_authority(tc) else []
        found.append(_client("tidb-client-tls", secret, "--client-tls=true", *trusts_any))
    return found


def require(found: Sequence[Client], secrets: Secrets) -> None:
    """Check that the Secrets exist and have all necessary keys. Raises BadJob."""
    for each in found:
        held = secrets.get(each.secret)
        if held is None:
            message = f"Secret {each.secret} does not exist; create it in this namespace with {', '.join(each.keys)}"
            raise BadJob("GetTLSSecretFailed", f"{message}: the certificate of a client")
        if lacks := [key for key in each.keys if not held.get(key)]:
            message = f"Secret {each.secret} lacks the key {' and '.join(lacks)} of a client's certificate; add it"
            raise BadJob("tlsKeyNotExist", message)


def _client(volume: str, secret: str, *args: str) -> Client:
    """A certificate; if the client trusts any server, it needs no CA."""
    return Client(args, secret, volume, f"/var/lib/{volume}", _KEYS[1:] if "--skipClientCA=true" in args else _KEYS)
