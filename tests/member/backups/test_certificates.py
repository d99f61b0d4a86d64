"""The TLS identity of Jobs' pods, and the check of its Secrets (backup.md 3.11)."""

from typing import Any

import pytest

from apis.backup_shared import TiDBAccessConfig
from member.backups.environment import BadJob
from member.backups.pods import certificates, require_certificates
from tests.apis.clusters import cluster, minimal

WHOLE = {"ca.crt": "a", "tls.crt": "b", "tls.key": "c"}


def told(access: TiDBAccessConfig | None = None, *, skips: bool = False, **metadata: Any) -> dict[str, list[str]]:
    """The Secrets of a cluster with TLS, and the program's arguments for them."""
    spec = minimal() | {"tlsCluster": {"enabled": True}}
    spec["tidb"] = spec["tidb"] | {"tlsClient": {"enabled": True, "skipInternalClientCA": skips}}
    return {each.secret: list(each.args) for each in certificates(cluster(spec, **metadata), access)}


def access(secret: str | None = None) -> TiDBAccessConfig:
    return TiDBAccessConfig(host="basic-tidb", secret_name="password", tls_client_secret_name=secret)


@pytest.mark.rule("backup-3.11")
def test_certificates_of_the_cluster_and_with_sql_of_its_clients() -> None:
    of_cluster = {"basic-cluster-client-secret": ["--cluster-tls=true"]}
    assert of_cluster == told()
    assert of_cluster | {"basic-tidb-client-secret": ["--client-tls=true"]} == told(access())
    skips = ["--client-tls=true", "--skipClientCA=true"]
    assert of_cluster | {"mine": skips} == told(access("mine"), skips=True)
    assert of_cluster == told(access(), annotations={"tidb.tidb.pingcap.com/skip-tls-when-connect-tidb": ""})


@pytest.mark.rule("backup-3.11")
def test_exports_speak_tls_where_they_name_a_secret() -> None:
    assert [] == certificates(None, access())
    assert [("mine", ["--client-tls=true"])] == [
        (each.secret, list(each.args)) for each in certificates(None, access("mine"))
    ]


@pytest.mark.parametrize(
    ("held", "reason", "message"),
    [
        (None, "GetTLSSecretFailed", "Secret mine does not exist"),
        ({"tls.crt": "b", "tls.key": ""}, "tlsKeyNotExist", "Secret mine lacks the key ca.crt and tls.key"),
    ],
)
@pytest.mark.rule("backup-3.11")
def test_a_secret_that_is_missing_or_not_whole_is_named(held: dict[str, str] | None, reason: str, message: str) -> None:
    require_certificates(certificates(None, access("mine")), {"mine": WHOLE})
    with pytest.raises(BadJob, match=message) as raised:
        require_certificates(certificates(None, access("mine")), {"mine": held})
    assert reason == raised.value.reason
