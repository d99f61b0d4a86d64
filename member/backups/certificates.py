"""The certificates with which the pods of Jobs speak TLS: Secrets of the user, mounted as files (backup.md 3.11).

They are looked for before a Job is made: a pod whose Secret is missing waits for it, without a word to the Backup.
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
    """As whom the program speaks TLS: its arguments, the Secret, and where that is mounted, by which volume."""

    args: Sequence[str]
    secret: str
    volume: str
    path: str
    keys: Sequence[str] = _KEYS


def clients(tc: TidbCluster | None, access: TiDBAccessConfig | None) -> list[Client]:
    """Those of a Job that works on a cluster, with `access` to its SQL; without a cluster SQL is all it speaks."""
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
    """See that the Secrets of clients are there, with all that is read of them. Raises BadJob."""
    for each in found:
        held = secrets.get(each.secret)
        if held is None:
            message = f"Secret {each.secret} does not exist; create it in this namespace with {', '.join(each.keys)}"
            raise BadJob("GetTLSSecretFailed", f"{message}: the certificate of a client")
        if lacks := [key for key in each.keys if not held.get(key)]:
            message = f"Secret {each.secret} lacks the key {' and '.join(lacks)} of a client's certificate; add it"
            raise BadJob("tlsKeyNotExist", message)


def _client(volume: str, secret: str, *args: str) -> Client:
    """One that trusts any server has no need of a CA."""
    return Client(args, secret, volume, f"/var/lib/{volume}", _KEYS[1:] if "--skipClientCA=true" in args else _KEYS)
