"""TiProxy's objects (objects.md 4.9, 6.4, 9.3)."""

from typing import Any

import pytest

from apis import toml
from apis.accessor import component
from apis.identity import SKIP_TLS_WHEN_CONNECT_TIDB
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.labels import min_ready_seconds
from member.objects.config_map import CONFIG_FILE
from member.tiproxy import desired as tiproxy
from tests.member.clusters import TLS, TLS_CLIENT, cluster, container_of, names, pod_of

SKIPPED = {SKIP_TLS_WHEN_CONNECT_TIDB: "true"}
PLAIN = {"pd-addrs": "demo-pd:2379", "require-backend-tls": False}
CLUSTER, OWN = "/var/lib/cluster-client-tls", "/var/lib/tiproxy-tls"
SERVER, SQL = "/var/lib/tiproxy-server-tls", "/var/lib/tiproxy-sql-tls"
HTTP = "/var/lib/tiproxy-http-server-tls"


def proxied(
    *, tls: bool = False, clients: Json | None = None, annotations: dict[str, str] | None = None, **tiproxy_spec: Any
) -> TidbCluster:
    tidb = {"tlsClient": TLS_CLIENT | clients} if clients is not None else {}
    return cluster(
        tlsCluster=TLS if tls else None,
        tidb=tidb,
        annotations=annotations,
        tiproxy={"replicas": 2, "version": "v1.3.0"} | tiproxy_spec,
    )


def config(tc: TidbCluster) -> Json:
    return toml.loads(tiproxy.content(tc).data[CONFIG_FILE])


def files(directory: str, *, ca: bool = True, pair: bool = True, **more: Any) -> Json:
    found: Json = {"ca": f"{directory}/ca.crt"} if ca else {}
    return found | ({"cert": f"{directory}/tls.crt", "key": f"{directory}/tls.key"} if pair else {}) | more


@pytest.mark.rule("objects-6.4")
def test_the_operators_settings_and_the_users_settings() -> None:
    assert {"workdir": "/var/lib/tiproxy/work", "proxy": PLAIN} == config(proxied())
    asked = (
        "workdir = '/elsewhere'\n[proxy]\npd-addrs = 'other:2379'\nrequire-backend-tls = true\nmax-connections = 5\n"
    )
    wanted = PLAIN | {"require-backend-tls": True, "max-connections": 5}
    assert {"workdir": "/var/lib/tiproxy/work", "proxy": wanted} == config(proxied(config=asked))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"name": "one"}, "one-pd.ns.svc:2379"),
        ({"name": "one", "namespace": "other"}, "one-pd.other.svc:2379"),
        ({"name": "one", "namespace": "other", "clusterDomain": "c.local"}, "one-pd.other.svc.c.local:2379"),
    ],
)
@pytest.mark.rule("objects-6.4")
def test_the_pd_of_another_cluster_has_its_full_name(reference: Json, expected: str) -> None:
    tc = cluster(without=("pd",), cluster=reference, tiproxy={"replicas": 1})
    assert expected == config(tc)["proxy"]["pd-addrs"]


@pytest.mark.parametrize(
    ("tc", "security", "mounts"),
    [
        (proxied(), {}, {}),
        (
            proxied(tls=True),
            {"cluster-tls": files(CLUSTER), "server-http-tls": files(HTTP, **{"skip-ca": True})},
            {"cluster-client-tls": CLUSTER, "tiproxy-tls": HTTP},
        ),
        (
            proxied(clients={}),
            {
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "sql-tls": files(SQL),
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"tidb-server-tls": SERVER, "tidb-client-tls": SQL},
        ),
        (
            proxied(clients={"disableClientAuthn": True, "skipInternalClientCA": True}),
            {
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "sql-tls": {"skip-ca": True},
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"tidb-server-tls": SERVER, "tidb-client-tls": SQL},
        ),
        (
            proxied(clients={"skipInternalClientCA": True}, config="[security.sql-tls]\nskip-ca = false\n"),
            {
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "sql-tls": files(SQL, **{"skip-ca": False}),
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"tidb-server-tls": SERVER, "tidb-client-tls": SQL},
        ),
        (
            proxied(clients={}, annotations=SKIPPED),
            {
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"tidb-server-tls": SERVER},
        ),
        (
            proxied(clients={}, annotations=SKIPPED, sslEnableTiDB=True),
            {
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "sql-tls": files(SQL),
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"tidb-server-tls": SERVER, "tidb-client-tls": SQL},
        ),
        (
            proxied(tls=True, clients={}),
            {
                "cluster-tls": files(CLUSTER),
                "server-tls": files(SERVER, **{"skip-ca": True}),
                "sql-tls": files(SQL),
                "server-http-tls": files(SERVER, **{"skip-ca": True}),
            },
            {"cluster-client-tls": CLUSTER, "tidb-server-tls": SERVER, "tidb-client-tls": SQL},
        ),
        (
            proxied(tls=True, clients={}, certLayout="v1"),
            {
                "cluster-tls": files(OWN),
                "server-tls": files(SERVER, ca=False, **{"skip-ca": True}),
                "sql-tls": files(SERVER, pair=False),
                "server-http-tls": files(OWN, **{"skip-ca": True}),
            },
            {"cluster-client-tls": CLUSTER, "tiproxy-tls": OWN, "tidb-server-tls": SERVER},
        ),
        (
            proxied(clients={}, certLayout="v1"),
            {
                "server-tls": files(SERVER, ca=False, **{"skip-ca": True}),
                "sql-tls": files(SERVER, pair=False),
            },
            {"tidb-server-tls": SERVER},
        ),
        (proxied(certLayout="v1"), {}, {}),
    ],
)  # fmt: skip
@pytest.mark.rule("objects-9.3")
def test_the_configuration_names_the_mounted_certificates(
    tc: TidbCluster, security: Json, mounts: dict[str, str]
) -> None:
    assert security == config(tc).get("security", {})
    made = tiproxy.stateful_set(tc, "cm")
    there = {each["name"]: each["mountPath"] for each in container_of(made, "tiproxy")["volumeMounts"]}
    assert {"config": "/etc/proxy", "annotations": "/etc/podinfo"} | mounts == there
    assert list(there) == names(pod_of(made)["volumes"])


@pytest.mark.rule("objects-9.1")
def test_the_secret_for_sql_to_tidb_may_have_another_name() -> None:
    tc = proxied(clients={}, tlsClientSecretName="mine")
    secrets = [
        each["secret"]["secretName"] for each in pod_of(tiproxy.stateful_set(tc, "cm"))["volumes"] if "secret" in each
    ]
    assert ["demo-tidb-server-secret", "mine"] == secrets


@pytest.mark.rule("objects-6.5")
def test_another_configuration_never_creates_another_config_map() -> None:
    tc = proxied(configUpdateStrategy="RollingUpdate")
    assert "InPlace" == component(tc, "tiproxy").config_update_strategy


@pytest.mark.rule("objects-2")
def test_clients_are_sent_to_ready_pods_only() -> None:
    clients, peers = tiproxy.services(proxied())
    assert ("NodePort", False) == (clients["spec"]["type"], clients["spec"].get("publishNotReadyAddresses", False))
    assert peers["spec"]["publishNotReadyAddresses"]


@pytest.mark.rule("objects-14")
def test_its_annotation_for_restarts_has_a_prefix_of_its_own() -> None:
    found = ["tiproxy.pingcap.com/tiproxy-min-ready-seconds", "tidb.pingcap.com/tidb-min-ready-seconds"]
    assert found == [min_ready_seconds(each) for each in ("tiproxy", "tidb")]


_HEALTH = ["127.0.0.1:3080/api/debug/health", "--fail", "--location"]
_FILES = "/var/lib/cluster-client-tls"


@pytest.mark.rule("TPX-1")
@pytest.mark.parametrize(
    ("probe", "tls", "expected"),
    [
        (None, False, None),
        ({"periodSeconds": 3}, False, None),
        ({"type": "tcp"}, False, {"tcpSocket": {"port": 6000}, "initialDelaySeconds": 10}),
        (
            {"type": "command", "initialDelaySeconds": 1, "periodSeconds": 3},
            False,
            {
                "exec": {"command": ["curl", f"http://{_HEALTH[0]}", *_HEALTH[1:]]},
                "initialDelaySeconds": 1,
                "periodSeconds": 3,
            },
        ),
        (
            {"type": "command"},
            True,
            {
                "exec": {
                    "command": [
                        *("curl", f"https://{_HEALTH[0]}", *_HEALTH[1:], "--cacert", f"{_FILES}/ca.crt"),
                        *("--cert", f"{_FILES}/tls.crt", "--key", f"{_FILES}/tls.key"),
                    ]
                },
                "initialDelaySeconds": 10,
            },
        ),
    ],
)
def test_a_readiness_probe_on_request(probe: Json | None, expected: Json | None, *, tls: bool) -> None:
    tc = proxied(tls=tls, readinessProbe=probe)
    made = tiproxy.stateful_set(tc, "cm")
    container = container_of(made, "tiproxy")
    assert expected == container.get("readinessProbe")
    if tls:
        assert _FILES in [each["mountPath"] for each in container["volumeMounts"]]
    assert "readinessProbe" not in container_of(tiproxy.as_built_by_v16(tc, made), "tiproxy")
