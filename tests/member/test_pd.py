"""PD's objects (objects.md 4.1, 6.4)."""

from typing import Any

import pytest

from apis import toml
from apis.tidbcluster import TidbCluster
from member.objects.config_map import CONFIG_FILE
from member.pd import desired as pd
from tests.member.clusters import TLS, TLS_CLIENT, cluster, container_of, names, pod_of

SKIP = {"tidb.tidb.pingcap.com/skip-tls-when-connect-tidb": ""}
DASHBOARD = {
    "tidb-cacert-path": "/var/lib/tidb-client-tls/ca.crt",
    "tidb-cert-path": "/var/lib/tidb-client-tls/tls.crt",
    "tidb-key-path": "/var/lib/tidb-client-tls/tls.key",
}


def _config(tc: TidbCluster) -> Any:
    return toml.loads(pd.content(tc).data[CONFIG_FILE])


@pytest.mark.rule("objects-4.1")
def test_certificates_in_order_between_data_and_user_mounts() -> None:
    fields = {
        "mountClusterClientSecret": True,
        "storageVolumes": [{"name": "log", "storageSize": "1Gi", "mountPath": "/log"}],
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
    }
    made = pd.stateful_set(cluster(tlsCluster=TLS, pd=fields, tidb={"tlsClient": TLS_CLIENT}), "cm")
    certificates = ["pd-tls", "cluster-client-tls", "tidb-client-tls"]
    mounts = container_of(made, "pd")["volumeMounts"]
    assert ["annotations", "config", "startup-script", "pd", *certificates, "pd-log", "x"] == names(mounts)
    assert [True] * 3 == [mount["readOnly"] for mount in mounts[4:7]]
    assert {
        "pd-tls": "demo-pd-cluster-secret",
        "cluster-client-tls": "demo-cluster-client-secret",
        "tidb-client-tls": "demo-tidb-client-secret",
    } == {volume["name"]: volume["secret"]["secretName"] for volume in pod_of(made)["volumes"][3:]}


@pytest.mark.rule("objects-9.1")
def test_the_dashboards_secret_can_be_named() -> None:
    tc = cluster(tidb={"tlsClient": TLS_CLIENT}, pd={"tlsClientSecretName": "mine"})
    assert "mine" == pod_of(pd.stateful_set(tc, "cm"))["volumes"][-1]["secret"]["secretName"]


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), {}),
        (cluster(tidb={"tlsClient": TLS_CLIENT}), {"dashboard": DASHBOARD}),
        (cluster(tidb={"tlsClient": TLS_CLIENT}, annotations=SKIP), {}),
        (cluster(tidb={"tlsClient": TLS_CLIENT}, pd={"version": "v3.0.8"}), {}),
        (cluster(tidb={"tlsClient": TLS_CLIENT}, pd={"version": "nightly"}), {"dashboard": DASHBOARD}),
        (
            cluster(tidb={"tlsClient": TLS_CLIENT | {"skipInternalClientCA": True}}),
            {"dashboard": {k: v for k, v in DASHBOARD.items() if k != "tidb-cacert-path"}},
        ),
        (cluster(pd={"enableDashboardInternalProxy": False}), {"dashboard": {"internal-proxy": False}}),
        (
            cluster(tlsCluster=TLS, pd={"config": '[security]\ncacert-path = "mine"\nother = 1\n'}),
            {
                "security": {
                    "cacert-path": "/var/lib/pd-tls/ca.crt",
                    "cert-path": "/var/lib/pd-tls/tls.crt",
                    "key-path": "/var/lib/pd-tls/tls.key",
                    "other": 1,
                }
            },
        ),
    ],
)
@pytest.mark.rule("objects-6.4")
def test_keys_that_the_operator_sets(tc: TidbCluster, expected: object) -> None:
    assert expected == _config(tc)


@pytest.mark.rule("objects-1.1")
def test_an_absent_configuration_is_an_empty_one() -> None:
    assert "" == pd.content(cluster(pd={"config": None})).data[CONFIG_FILE]


@pytest.mark.rule("objects-4.1")
def test_readiness_only_when_wished() -> None:
    assert "readinessProbe" not in container_of(pd.stateful_set(cluster(), "cm"), "pd")
    wished = cluster(pd={"readinessProbe": {"type": "command", "periodSeconds": 5}})
    assert {"tcpSocket": {"port": 2379}, "initialDelaySeconds": 10, "periodSeconds": 5} == container_of(
        pd.stateful_set(wished, "cm"), "pd"
    )["readinessProbe"]
