"""The start scripts of TiKV and TiDB do what objects.md 7.6 says, under dash and bash."""

import base64
from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from member.startscript import tidb_script, tikv_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import Pod

TIKV = "demo-tikv-0.demo-tikv-peer.ns.svc"
TIDB = "demo-tidb-0.demo-tidb-peer.ns.svc"
ELSEWHERE: dict[str, Any] = {"without_pd": True, "cluster": {"name": "main", "namespace": "base"}}
MTLS = {"enabled": True, "enableDiscoveryMTLS": True}


def tikv_argv(pd: str, *after: str, host: str = TIKV, listen: str = "0.0.0.0", between: str = "") -> list[str]:
    return [
        "/tikv-server",
        f"--pd={pd}",
        f"--advertise-addr={host}:20160",
        f"--addr={listen}:20160",
        f"--status-addr={listen}:20180",
        *([between] if between else []),
        "--data-dir=/var/lib/tikv",
        "--capacity=10GB",
        "--config=/etc/tikv/tikv.toml",
        *after,
    ]


def tidb_argv(pd: str, *more: str, host: str = TIDB) -> list[str]:
    flags = ["--store=tikv", f"--advertise-address={host}", "--host=0.0.0.0", f"--path={pd}"]
    return ["/tidb-server", *flags, "--config=/etc/tidb/tidb.toml", *more]


@pytest.mark.parametrize(
    ("spec", "pd"),
    [
        ({}, "http://demo-pd:2379"),
        ({"tlsCluster": {"enabled": True}}, "https://demo-pd:2379"),
        ({"cluster": {"name": "main"}}, "http://demo-pd:2379"),
        (ELSEWHERE, "http://main-pd.base.svc:2379"),
        ({"without_pd": True, "cluster": {"name": "main", "namespace": "ns"}}, "http://main-pd.ns.svc:2379"),
        (
            {"without_pd": True, "cluster": {"name": "main", "namespace": "base", "clusterDomain": "m.local"}},
            "http://main-pd.base.svc.m.local:2379",
        ),
    ],
)
@pytest.mark.rule("objects-7.3")
def test_where_pd_is(tikv_pod: Pod, spec: dict[str, Any], pd: str) -> None:
    assert tikv_argv(pd) == tikv_pod.run(tikv_script(cluster(**spec))).argv
    assert tikv_argv(pd.partition("://")[2]) == tikv_pod.run(tikv_script(v2(**spec))).argv


@pytest.mark.rule("objects-7.6")
def test_status_addresses_are_advertised_with_dynamic_configuration(tikv_pod: Pod) -> None:
    flag = f"--advertise-status-addr={TIKV}:20180"
    v1 = tikv_pod.run(tikv_script(cluster(enableDynamicConfiguration=True))).argv
    assert tikv_argv("http://demo-pd:2379", between=flag) == v1
    assert tikv_argv("demo-pd:2379", flag) == tikv_pod.run(tikv_script(v2(enableDynamicConfiguration=True))).argv


@pytest.mark.rule("objects-7.6")
def test_listening_on_ipv6(tikv_pod: Pod) -> None:
    run = tikv_pod.run(tikv_script(cluster(preferIPv6=True)))
    assert tikv_argv("http://demo-pd:2379", listen="[::]") == run.argv


@pytest.mark.parametrize(("tc", "pd"), [(cluster(), "http://demo-pd:2379"), (v2(), "demo-pd:2379")])
@pytest.mark.rule("objects-7.6")
def test_store_labels_are_an_argument_of_their_own(tikv_pod: Pod, tc: TidbCluster, pd: str) -> None:
    tikv_pod.env["STORE_LABELS"] = "zone=a,host=n1"
    assert tikv_argv(pd, "--labels", "zone=a,host=n1") == tikv_pod.run(tikv_script(tc)).argv


@pytest.mark.rule("objects-7.6")
def test_tikv_keeps_data_in_a_sub_directory(tikv_pod: Pod) -> None:
    run = tikv_pod.run(tikv_script(cluster(tikv={"dataSubDir": "d"})))
    assert "--data-dir=/var/lib/tikv/d" in (run.argv or [])


@pytest.mark.parametrize("tc", [cluster(clusterDomain="c.local"), v2(clusterDomain="c.local")])
@pytest.mark.rule("objects-7.6")
def test_the_cluster_domain_is_advertised(tikv_pod: Pod, tc: TidbCluster) -> None:
    assert f"--advertise-addr={TIKV}.c.local:20160" in (tikv_pod.run(tikv_script(tc)).argv or [])


@pytest.mark.rule("objects-7.6")
def test_tidb_advertises_the_cluster_domain(tidb_pod: Pod) -> None:
    argv = tidb_pod.run(tidb_script(cluster(clusterDomain="c.local"))).argv or []
    assert f"--advertise-address={TIDB}.c.local" in argv


@pytest.mark.rule("objects-7.6")
def test_tikv_waits_for_its_own_address(tikv_pod: Pod) -> None:
    tikv_pod.answers("hostname", (0, "10.0.0.1 "))
    tikv_pod.answers("getent", (2, ""), (0, "10.0.0.9  STREAM x"), (0, "10.0.0.9  STREAM x\n10.0.0.1  DGRAM\n"))
    assert tikv_argv("demo-pd:2379") == tikv_pod.run(tikv_script(v2("WaitForDnsNameIpMatch"))).argv
    assert [f"ahosts {TIKV}"] * 3 == tikv_pod.calls("getent")


@pytest.mark.rule("objects-7.6")
def test_tikv_gives_up_on_dns_like_pd(tikv_pod: Pod) -> None:
    run = tikv_pod.run(tikv_script(v2("WaitForDnsNameIpMatch", pd={"startTimeout": 3})))
    assert (1, None, 2) == (run.code, run.argv, len(tikv_pod.calls("getent")))


PEERS = "http://demo-pd:2379,http://pd-0.far:2379"


def asked(call: str) -> str:
    return base64.b64decode(call.rpartition("/verify/")[2]).decode()


@pytest.mark.rule("objects-7.3")
def test_across_kubernetes_tikv_asks_discovery(tikv_pod: Pod) -> None:
    tikv_pod.answers("wget", (1, ""), (0, ""), (0, PEERS))
    assert tikv_argv(PEERS) == tikv_pod.run(tikv_script(cluster(acrossK8s=True, **ELSEWHERE))).argv
    calls = tikv_pod.calls("wget")
    assert ["-qO- -T 3 http://demo-discovery.ns:10261/verify"] * 3 == [call.rpartition("/")[0] for call in calls]
    assert {"http://demo-pd:2379\n"} == {asked(call) for call in calls}
    assert all(0 <= int(seconds) <= 4 for seconds in tikv_pod.calls("sleep"))


@pytest.mark.parametrize("answer", [PEERS, PEERS.replace("http:", "https:"), "demo-pd:2379,pd-0.far:2379"])
@pytest.mark.rule("objects-7.3")
def test_schemes_are_taken_off_where_none_belongs(tikv_pod: Pod, answer: str) -> None:
    tikv_pod.answers("wget", (0, answer))
    assert tikv_argv("demo-pd:2379,pd-0.far:2379") == tikv_pod.run(tikv_script(v2(acrossK8s=True))).argv


@pytest.mark.parametrize("tc", [cluster(acrossK8s=True), v2(acrossK8s=True)])
@pytest.mark.rule("objects-7.3")
def test_across_kubernetes_tidb_asks_discovery(tidb_pod: Pod, tc: TidbCluster) -> None:
    tidb_pod.answers("wget", (1, ""), (0, PEERS))
    run = tidb_pod.run(tidb_script(tc))
    assert tidb_argv("demo-pd:2379,pd-0.far:2379", "--log-slow-query=/var/log/tidb/slowlog") == run.argv
    assert {"demo-pd:2379\n"} == {asked(call) for call in tidb_pod.calls("wget")}


@pytest.mark.rule("objects-9.4")
def test_asks_discovery_with_the_components_certificate_under_mtls(tidb_pod: Pod) -> None:
    tidb_pod.answers("curl", (0, "demo-pd:2379"))
    tidb_pod.run(tidb_script(cluster(acrossK8s=True, tlsCluster=MTLS)))
    (call,) = tidb_pod.calls("curl")
    assert "--cacert /var/lib/tidb-tls/ca.crt --cert /var/lib/tidb-tls/tls.crt --key /var/lib/tidb-tls/tls.key" in call
    assert "https://demo-discovery.ns:10261/verify/" in call


@pytest.mark.rule("objects-7.3")
def test_preferred_addresses_need_no_discovery(tikv_pod: Pod) -> None:
    tc = v2("PreferPDAddressesOverDiscovery", acrossK8s=True, pdAddresses=["https://a.x:2379", "b.x:1"])
    assert tikv_argv("a.x:2379,b.x:2379") == tikv_pod.run(tikv_script(tc)).argv
    assert [] == tikv_pod.calls("wget")


SLOW = "--log-slow-query=/var/log/tidb/slowlog"


@pytest.mark.parametrize(
    ("tc", "env", "more"),
    [
        (cluster(), {}, [SLOW]),
        (cluster(), {"SLOW_LOG_FILE": ""}, []),
        (cluster(), {"BINLOG_ENABLED": "true"}, ["--enable-binlog=true", SLOW]),
        (cluster(tidb={"plugins": ["a", "b"]}), {}, [SLOW, "--plugin-dir", "/plugins", "--plugin-load", "a,b"]),
        (
            cluster(tidb={"plugins": ["a"], "arguments": ["--x=1 --y", '`$NAMESPACE`\\"', "*"]}),
            {},
            [SLOW, "--plugin-dir", "/plugins", "--plugin-load", "a", "--x=1", "--y", '`ns`\\"', "*"],
        ),
        (v2(), {"BINLOG_ENABLED": "true"}, [SLOW]),
        (v2(tidb={"binlogEnabled": True}), {}, ["--enable-binlog=true", SLOW]),
        (v2(pump={"replicas": 1}), {}, ["--enable-binlog=true", SLOW]),
        (v2(pump={"replicas": 1}, tidb={"binlogEnabled": False}), {}, [SLOW]),
        (
            v2(tidb={"plugins": ["a", "b"], "arguments": ["--x=1"]}),
            {},
            ["--plugin-dir=/plugins", "--plugin-load=a,b", SLOW, "--x=1"],
        ),
    ],
)
@pytest.mark.rule("objects-7.6")
def test_tidbs_optional_flags(tidb_pod: Pod, tc: TidbCluster, env: dict[str, str], more: list[str]) -> None:
    tidb_pod.env |= env
    assert tidb_argv("demo-pd:2379", *more) == tidb_pod.run(tidb_script(tc)).argv
