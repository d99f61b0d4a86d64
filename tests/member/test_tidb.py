"""TiDB's objects (objects.md 4.4, 6.4)."""

from typing import Any

import pytest

from apis import toml
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.objects.config_map import CONFIG_FILE
from member.tidb import desired as tidb
from tests.member.clusters import TLS, TLS_CLIENT, cluster, container_of, names, pod_of, values

CLUSTER_TLS = {
    "cluster-ssl-ca": "/var/lib/tidb-tls/ca.crt",
    "cluster-ssl-cert": "/var/lib/tidb-tls/tls.crt",
    "cluster-ssl-key": "/var/lib/tidb-tls/tls.key",
}
SIGNING = {
    "session-token-signing-key": "/var/lib/tidb-tls/tls.key",
    "session-token-signing-cert": "/var/lib/tidb-tls/tls.crt",
}
SERVER_TLS = {"ssl-cert": "/var/lib/tidb-server-tls/tls.crt", "ssl-key": "/var/lib/tidb-server-tls/tls.key"}
SSL_CA = {"ssl-ca": "/var/lib/tidb-server-tls/ca.crt"}
MAX_BACKUPS = {"log": {"file": {"max-backups": 3}}}


def _tidb(**fields: object) -> Json:
    return tidb.stateful_set(cluster(tidb=fields), "cm")


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(tidb={"config": None}), {}),
        (
            cluster(tidb={"tokenBasedAuthEnabled": True}),
            {"auth-token-jwks": "/var/lib/tidb-auth-token/tidb_auth_token_jwks.json"},
        ),
        (cluster(tlsCluster=TLS), CLUSTER_TLS),
        (cluster(tlsCluster=TLS, tiproxy={"replicas": 1}), CLUSTER_TLS | SIGNING),
        (cluster(tlsCluster=TLS, tiproxy={"replicas": 0}), CLUSTER_TLS),
        (cluster(tidb={"tlsClient": TLS_CLIENT}), SERVER_TLS | SSL_CA),
        (cluster(tidb={"tlsClient": TLS_CLIENT | {"disableClientAuthn": True}}), SERVER_TLS),
    ],
)
@pytest.mark.rule("objects-6.4")
def test_security_keys_that_the_operator_sets(tc: TidbCluster, expected: dict[str, str]) -> None:
    config = toml.loads(tidb.content(tc).data[CONFIG_FILE])
    assert MAX_BACKUPS | ({"security": expected} if expected else {}) == config


@pytest.mark.rule("objects-6.4")
def test_bootstrap_sql_is_named_in_the_configuration_and_mounted() -> None:
    tc = cluster(tidb={"bootstrapSQLConfigMapName": "sql", "config": "[log.file]\nmax-backups = 7\n"})
    config = toml.loads(tidb.content(tc).data[CONFIG_FILE])
    assert {"initialize-sql-file": "/etc/tidb-bootstrap/bootstrap.sql", "log": {"file": {"max-backups": 7}}} == config
    volume = next(v for v in pod_of(tidb.stateful_set(tc, "cm"))["volumes"] if v["name"] == "tidb-bootstrap-sql")
    assert {"name": "sql", "items": [{"key": "bootstrap-sql", "path": "bootstrap.sql"}]} == volume["configMap"]


@pytest.mark.rule("objects-4.4")
def test_volumes_and_mounts_in_their_different_orders() -> None:
    fields = {
        "tokenBasedAuthEnabled": True,
        "tlsClient": TLS_CLIENT,
        "bootstrapSQLConfigMapName": "sql",
        "storageVolumes": [{"name": "tmp", "storageSize": "1Gi", "mountPath": "/tmp"}],
        "additionalVolumes": [{"name": "x", "emptyDir": {}}],
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
        "customizedStartupProbe": {"image": "i", "binaryName": "probe"},
    }
    made = tidb.stateful_set(cluster(tlsCluster=TLS, tidb=fields), "cm")
    shared = ["annotations", "config", "startup-script", "tidb-auth-token"]
    tls, sql = ["tidb-tls", "tidb-server-tls"], ["tidb-bootstrap-sql"]
    assert [*shared, *sql, *tls, "slowlog", "probe", "x"] == names(pod_of(made)["volumes"])
    mounts = container_of(made, "tidb")["volumeMounts"]
    assert [*shared, *tls, *sql, "tidb-tmp", "x", "slowlog", "probe"] == names(mounts)


@pytest.mark.rule("objects-4.4")
def test_the_slow_log_on_its_own_volume() -> None:
    tailer = {"image": "tail:1", "imagePullPolicy": "Never", "requests": {"cpu": "1"}}
    made = _tidb(slowLogTailer=tailer)
    assert {
        "name": "slowlog",
        "image": "tail:1",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", "touch /var/log/tidb/slowlog; tail -n0 -F /var/log/tidb/slowlog;"],
        "volumeMounts": [{"name": "slowlog", "mountPath": "/var/log/tidb"}],
        "resources": {"requests": {"cpu": "1"}},
    } == container_of(made, "slowlog")
    assert "/var/log/tidb/slowlog" == values(container_of(made, "tidb"))["SLOW_LOG_FILE"]
    assert {"name": "slowlog", "emptyDir": {}} == pod_of(made)["volumes"][-1]


@pytest.mark.rule("objects-4.4")
def test_the_slow_log_on_a_storage_volume() -> None:
    volume = {"name": "logs", "storageSize": "1Gi", "mountPath": "/logs"}
    made = _tidb(slowLogVolumeName="logs", storageVolumes=[volume])
    assert "/logs/logs" == values(container_of(made, "tidb"))["SLOW_LOG_FILE"]
    assert [{"name": "tidb-logs", "mountPath": "/logs"}] == container_of(made, "slowlog")["volumeMounts"]
    assert "slowlog" not in names(pod_of(made)["volumes"])


@pytest.mark.rule("objects-4.4")
def test_the_slow_log_on_an_unknown_volume_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"spec\.tidb\.slowLogVolumeName"):
        _tidb(slowLogVolumeName="nowhere")


@pytest.mark.rule("objects-4.4")
def test_without_a_separate_slow_log() -> None:
    made = _tidb(separateSlowLog=False)
    assert ["tidb"] == names(pod_of(made)["containers"])
    assert values(container_of(made, "tidb"))["SLOW_LOG_FILE"] is None


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), "false"),
        (cluster(pump={"replicas": 1, "requests": {"storage": "1Gi"}}), "true"),
        (cluster(tidb={"binlogEnabled": True}), "true"),
    ],
)
@pytest.mark.rule("objects-4.4")
def test_binlog(tc: TidbCluster, expected: str) -> None:
    assert expected == values(container_of(tidb.stateful_set(tc, "cm"), "tidb"))["BINLOG_ENABLED"]


@pytest.mark.parametrize(
    ("fields", "tls", "expected"),
    [
        ({}, {}, {"tcpSocket": {"port": 4000}, "initialDelaySeconds": 10}),
        (
            {"initialDelaySeconds": 20, "periodSeconds": 5},
            {},
            {"tcpSocket": {"port": 4000}, "initialDelaySeconds": 20, "periodSeconds": 5},
        ),
        (
            {"type": "command"},
            {},
            {
                "exec": {"command": ["curl", "http://127.0.0.1:10080/status", "--fail", "--location"]},
                "initialDelaySeconds": 10,
            },
        ),
        (
            {"type": "command"},
            TLS,
            {
                "exec": {
                    "command": [
                        *["curl", "https://127.0.0.1:10080/status", "--fail", "--location"],
                        *["--cacert", "/var/lib/tidb-tls/ca.crt"],
                        *["--cert", "/var/lib/tidb-tls/tls.crt"],
                        *["--key", "/var/lib/tidb-tls/tls.key"],
                    ]
                },
                "initialDelaySeconds": 10,
            },
        ),
    ],
)
@pytest.mark.rule("objects-4.4")
def test_readiness(fields: Json, tls: Json, expected: Any) -> None:
    tc = cluster(tlsCluster=tls, tidb={"readinessProbe": fields} if fields else {})
    assert expected == container_of(tidb.stateful_set(tc, "cm"), "tidb")["readinessProbe"]


@pytest.mark.rule("objects-4.4")
def test_lifecycle_and_customized_startup_probe() -> None:
    probe = {"image": "i:1", "binaryName": "probe", "args": ["-v"], "timeoutSeconds": 0, "failureThreshold": 3}
    lifecycle = {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    made = _tidb(customizedStartupProbe=probe, lifecycle=lifecycle, securityContext={"runAsUser": 1})
    container = container_of(made, "tidb")
    assert lifecycle == container["lifecycle"]
    assert {
        "exec": {"command": ["/var/lib/customized-startup-probe/probe", "-v"]},
        "successThreshold": 1,
        "failureThreshold": 3,
    } == container["startupProbe"]
    copy = pod_of(made)["initContainers"][0]
    assert ("probe", "i:1", "IfNotPresent", {"runAsUser": 1}) == (
        copy["name"],
        copy["image"],
        copy["imagePullPolicy"],
        copy["securityContext"],
    )
    assert ["/bin/sh", "-c"] == copy["command"]
    assert "\ncp /probe /var/lib/customized-startup-probe/probe " in copy["args"][0]


@pytest.mark.rule("TAIL-1")
def test_the_slow_log_may_have_a_native_sidecar() -> None:
    made = pod_of(_tidb(slowLogTailer={"useSidecar": True}))
    assert ["tidb"] == names(made["containers"])
    assert [("slowlog", "Always")] == [(each["name"], each["restartPolicy"]) for each in made["initContainers"]]
