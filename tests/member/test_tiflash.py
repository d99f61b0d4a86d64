"""TiFlash's objects and configuration (objects.md 4.6, 6.7)."""

from typing import Any

import pytest

from apis import config, toml
from apis.accessor import component
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.naming import member_name
from member.objects.config_map import choose_config_map, config_map
from member.tiflash import desired as tiflash
from member.tiflash.desired import proxy_tables, server_tables
from tests.member.clusters import TLS, cluster, container_of, names, pod_of, values
from tests.member.recordings import Recording, differences, identity

CLAIM: Json = {"resources": {"requests": {"storage": "1Gi"}}}
MOUNTED = {"tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container": "true"}
HOST = "demo-tiflash-POD_NUM.demo-tiflash-peer.ns.svc"


def with_tiflash(*, tiflash: Json | None = None, **spec: Any) -> TidbCluster:
    return cluster(tiflash={"replicas": 2, "storageClaims": [CLAIM, CLAIM]} | (tiflash or {}), **spec)


def made(tc: TidbCluster) -> Json:
    return tiflash.stateful_set(tc, "cm")


def server(tc: TidbCluster, *paths: str) -> list[object]:
    return [config.get(server_tables(tc), path) for path in paths]


def proxy(tc: TidbCluster, *paths: str) -> list[object]:
    return [config.get(proxy_tables(tc), path) for path in paths]


@pytest.mark.parametrize(
    "name", ["tiflash", "heterogeneous", "dev-across", "dev-components", "dev-ipv6", "dev-misc", "dev-tls"]
)
@pytest.mark.rule("objects-4.6")
def test_objects_match_every_recording(name: str) -> None:
    recording, compared = Recording(name), 0
    for tc in recording.clusters:
        if tc.spec.tiflash is None:
            continue
        strategy = component(tc, "tiflash").config_update_strategy
        choice = choose_config_map(member_name(tc, "tiflash"), tiflash.content(tc), strategy)
        objects = (*tiflash.services(tc), config_map(tc, "tiflash", choice), tiflash.stateful_set(tc, choice.name))
        for ours in objects:
            assert [] == differences(recording.objects[identity(ours)], ours)
            compared += 1
    assert 3 == compared


@pytest.mark.rule("objects-4.6")
def test_each_claim_is_mounted_by_its_number_and_tailers_have_the_volume_of_their_file() -> None:
    logger = {"config": {"config": {"logger": {"log": "/data1/logs/x.log"}}}}
    live = made(with_tiflash(tiflash=logger))
    assert ["annotations", "data0", "data1"] == names(container_of(live, "tiflash")["volumeMounts"])
    assert ["tiflash", "serverlog", "errorlog", "clusterlog"] == names(pod_of(live)["containers"])
    assert [{"name": "data1", "mountPath": "/data1"}] == container_of(live, "serverlog")["volumeMounts"]
    assert "touch /data1/logs/x.log; tail -n0 -F /data1/logs/x.log;" == container_of(live, "serverlog")["command"][2]
    assert [{"name": "data0", "mountPath": "/data0"}] == container_of(live, "errorlog")["volumeMounts"]
    assert ["data0", "data1"] == names(live["spec"]["volumeClaimTemplates"])


@pytest.mark.rule("objects-4.6")
def test_variables() -> None:
    live = made(with_tiflash(tiflash={"limits": {"storage": "2Gi"}}))
    expected = {"CLUSTER_NAME": "demo", "HEADLESS_SERVICE_NAME": "demo-tiflash-peer", "CAPACITY": "2GB", "TZ": "UTC"}
    assert expected == values(container_of(live, "tiflash"))
    assert "POD_NAME" in names(container_of(made(with_tiflash(hostNetwork=True)), "tiflash")["env"])


@pytest.mark.rule("objects-4.6")
def test_the_proxys_port_wins_over_a_users_annotation() -> None:
    live = made(with_tiflash(tiflash={"annotations": {"tiflash.proxy.prometheus.io/port": "1"}}))
    assert "20292" == live["spec"]["template"]["metadata"]["annotations"]["tiflash.proxy.prometheus.io/port"]


@pytest.mark.rule("objects-4.6")
def test_a_mounted_config_map_needs_no_init_container_and_flags_pass_the_pods_addresses() -> None:
    tc = with_tiflash(tiflash={"annotations": MOUNTED})
    live = made(tc)
    assert "initContainers" not in pod_of(live)
    last = container_of(live, "tiflash")["volumeMounts"][-1]
    assert {"name": "config", "mountPath": "/etc/tiflash", "readOnly": True} == last
    assert [None, None] == server(tc, "flash.service_addr", "flash.proxy.advertise-addr")
    assert ["/etc/tiflash/proxy_templ.toml"] == server(tc, "flash.proxy.config")
    assert [None, None] == proxy(tc, "server.engine-addr", "server.advertise-status-addr")


@pytest.mark.rule("objects-7.6")
def test_the_init_container_has_a_certificate_if_discovery_requires_one() -> None:
    mtls = {"enabled": True, "enableDiscoveryMTLS": True}
    init = pod_of(made(with_tiflash(acrossK8s=True, tlsCluster=mtls)))["initContainers"][0]
    assert ("pingcap/tiflash:v8.5.0", "tiflash-tls") == (init["image"], init["volumeMounts"][-1]["name"])
    init = pod_of(made(with_tiflash(acrossK8s=True, tlsCluster=TLS)))["initContainers"][0]
    assert ("busybox:1.26.2", ["data0", "config"]) == (init["image"], names(init["volumeMounts"]))


@pytest.mark.rule("objects-6.7")
def test_the_users_settings_win() -> None:
    own = {"config": "tmp_path = '/tmp'\n[flash]\ntidb_status_addr = 'x:1'\n", "proxy": "log-level = 'warn'\n"}
    tc = with_tiflash(tiflash={"config": own})
    assert ["/tmp", "x:1", "0.0.0.0:3930"] == server(tc, "tmp_path", "flash.tidb_status_addr", "flash.service_addr")
    assert ["warn", f"{HOST}:3930"] == proxy(tc, "log-level", "server.engine-addr")


@pytest.mark.rule("objects-6.7")
def test_data_lies_on_every_disk_unless_the_old_keys_say_where() -> None:
    assert [["/data0/db", "/data1/db"], ["/data0/kvstore"]] == server(
        with_tiflash(), "storage.main.dir", "storage.raft.dir"
    )
    old = {"config": {"config": "path = '/data1/db'\n[raft]\nkvstore_path = '/data1/kv'\n"}}
    assert [None, None] == server(with_tiflash(tiflash=old), "storage.main.dir", "storage.raft.dir")


@pytest.mark.parametrize(
    ("version", "annotations", "tls", "ports"),
    [
        ("v8.5.0", {}, False, [None, None, None, None]),
        ("nightly", {}, False, [None, None, None, None]),
        ("v7.0.0", {}, False, [9000, 8123, None, None]),
        ("v8.5.0", {"tidb.pingcap.com/tiflash-710-keep-ports": ""}, False, [9000, 8123, None, None]),
        ("v7.0.0", {}, True, [None, None, 9000, 8123]),
        ("v8.5.0", {}, True, [None, None, None, None]),
        ("v5.3.0", {}, False, [9000, 8123, None, None]),
        ("v5.3.0", {}, True, [None, None, 9000, 8123]),
    ],
)
@pytest.mark.rule("objects-6.7")
def test_ports_by_version(version: str, annotations: dict[str, str], tls: bool, ports: list[int | None]) -> None:
    tc = with_tiflash(version=version, annotations=annotations, tlsCluster={"enabled": tls})
    assert ports == server(tc, "tcp_port", "http_port", "tcp_port_secure", "https_port")


@pytest.mark.rule("objects-6.7")
def test_versions_before_5_4_have_one_path_and_the_settings_they_need() -> None:
    tc = with_tiflash(version="v5.3.1", tiflash={"annotations": MOUNTED})
    assert ["/data0/db,/data1/db", None] == server(tc, "path", "storage.main.dir")
    assert [True, "default", 0] == server(
        tc, "application.runAsDaemon", "users.default.quota", "quotas.default.interval.queries"
    )
    # flags with the pod's addresses came later
    assert [f"{HOST}:20170"] == server(tc, "flash.proxy.advertise-addr")


@pytest.mark.rule("objects-6.7")
def test_finds_pd_and_tidb() -> None:
    paths = ("raft.pd_addr", "flash.tidb_status_addr")
    assert ["demo-pd.ns.svc:2379", "demo-tidb.ns.svc:10080"] == server(with_tiflash(), *paths)
    ref = {"name": "main", "namespace": "base", "clusterDomain": "m.local"}
    joined = with_tiflash(without=("pd", "tidb"), cluster=ref)
    assert ["main-pd.base.svc.m.local:2379", "main-tidb.base.svc.m.local:10080"] == server(joined, *paths)
    across = with_tiflash(without=("tidb",), cluster=ref, acrossK8s=True)
    assert ["PD_ADDR", "main-tidb-peer.base.svc.m.local:10080"] == server(across, *paths)
    preferred: dict[str, Any] = {
        "startScriptVersion": "v2",
        "startScriptV2FeatureFlags": ["PreferPDAddressesOverDiscovery"],
        "pdAddresses": ["http://a:2379", "http://b:2379"],
    }
    assert ["http://a:2379,http://b:2379"] == server(with_tiflash(acrossK8s=True, **preferred), "raft.pd_addr")


@pytest.mark.rule("objects-6.7")
def test_certificates_and_names_of_the_proxy() -> None:
    tc = with_tiflash(tlsCluster=TLS, tiflash={"config": {"config": {"security": {"cert_allowed_cn": ["TiDB"]}}}})
    assert ["/var/lib/tiflash-tls/ca.crt", "/var/lib/tiflash-tls/tls.key"] == server(
        tc, "security.ca_path", "security.key_path"
    )
    assert ["/var/lib/tiflash-tls/tls.crt", ["TiDB"]] == proxy(tc, "security.cert-path", "security.cert-allowed-cn")


@pytest.mark.rule("objects-6.7")
def test_the_config_map_holds_both_as_templates() -> None:
    content = tiflash.content(with_tiflash())
    assert ["config_templ.toml", "proxy_templ.toml"] == list(content.data)
    assert server_tables(with_tiflash()) == toml.loads(content.data["config_templ.toml"])


@pytest.mark.rule("objects-6.5")
def test_the_same_in_another_order_of_keys_keeps_name_and_text() -> None:
    tc = with_tiflash()
    in_use: Json = {"metadata": {}, "data": {key: f"\n{text}" for key, text in tiflash.content(tc).data.items()}}
    kept = choose_config_map("demo-tiflash", tiflash.content(tc), "RollingUpdate", "demo-tiflash-1", in_use)
    assert ("demo-tiflash-1", in_use["data"]) == (kept.name, kept.data)
    other = tiflash.content(with_tiflash(tiflash={"config": {"proxy": "log-level = 'warn'\n"}}))
    changed = choose_config_map("demo-tiflash", other, "RollingUpdate", "demo-tiflash-1", in_use)
    assert (False, other.data) == (changed.same_config, changed.data)


@pytest.mark.rule("objects-4.6")
def test_an_empty_security_context_switches_privileges_off() -> None:
    assert {"privileged": True} == container_of(made(with_tiflash(tiflash={"privileged": True})), "tiflash")[
        "securityContext"
    ]
    own = made(with_tiflash(tiflash={"privileged": True, "securityContext": {}}))
    assert "securityContext" not in container_of(own, "tiflash")


@pytest.mark.rule("TAIL-1")
def test_tailers_may_be_native_sidecars_after_the_container_that_fills_in_the_configuration() -> None:
    made = pod_of(tiflash.stateful_set(with_tiflash(tiflash={"logTailer": {"useSidecar": True}}), "cm"))
    assert (["init", "serverlog", "errorlog", "clusterlog"], ["tiflash"]) == (
        names(made["initContainers"]),
        names(made["containers"]),
    )
