"""PD's start script does what objects.md 7.4 says, under dash and bash."""

import base64

import pytest

from apis.tidbcluster import TidbCluster
from member.startscript import pd_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import Pod

HOST = "demo-pd-0.demo-pd-peer.ns.svc"
LONG = f"{HOST}.c.local"
BEGIN = f"--initial-cluster=demo-pd-0=http://{HOST}:2380"


def argv(*more: str, host: str = HOST, name: str = "demo-pd-0", scheme: str = "http", data: str = "") -> list[str]:
    return [
        "/pd-server",
        f"--data-dir=/var/lib/pd{data}",
        f"--name={name}",
        f"--peer-urls={scheme}://0.0.0.0:2380",
        f"--advertise-peer-urls={scheme}://{host}:2380",
        f"--client-urls={scheme}://0.0.0.0:2379",
        f"--advertise-client-urls={scheme}://{host}:2379",
        "--config=/etc/pd/pd.toml",
        *more,
    ]


def asked(call: str) -> str:
    """The text about which a call asked Discovery."""
    return base64.b64decode(call.rpartition("/new/")[2]).decode()


@pytest.mark.rule("objects-7.4")
def test_a_member_without_data_asks_until_discovery_answers(pd_pod: Pod) -> None:
    pd_pod.answers("wget", (1, ""), (0, ""), (0, "<html>no</html>"), (0, "--initial-cluster="), (0, f"{BEGIN}\n"))
    run = pd_pod.run(pd_script(cluster()))
    assert (0, argv(BEGIN)) == (run.code, run.argv)
    calls = pd_pod.calls("wget")
    assert ["-qO- -T 3 http://demo-discovery.ns.svc:10261/new"] * 5 == [call.rpartition("/")[0] for call in calls]
    assert {f"{HOST}:2380\n"} == {asked(call) for call in calls}


@pytest.mark.rule("objects-7.4")
def test_waits_a_random_time_between_requests_and_before_the_start(pd_pod: Pod) -> None:
    pd_pod.answers("wget", (1, ""), (1, ""), (0, BEGIN))
    pd_pod.run(pd_script(cluster()))
    dns, *between, before = [int(seconds) for seconds in pd_pod.calls("sleep")]
    assert (1, 2) == (dns, len(between))
    assert all(0 <= seconds <= 4 for seconds in between)
    assert 0 <= before <= 9


@pytest.mark.slow
@pytest.mark.rule("objects-7.4")
def test_random_waits_are_spread(pd_pod: Pod) -> None:
    pd_pod.answers("wget", *[(1, "")] * 60, (0, BEGIN))
    pd_pod.run(pd_script(cluster()))
    assert {"0", "1", "2", "3", "4"} == set(pd_pod.calls("sleep")[1:-1])


@pytest.mark.rule("objects-7.4")
def test_a_member_with_data_sends_no_request(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    assert argv() == pd_pod.run(pd_script(cluster())).argv
    assert [] == pd_pod.calls("wget")


@pytest.mark.rule("objects-7.4")
def test_a_member_that_joined_before_joins_the_same_members(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/join", "demo-pd-1=http://b:2380,demo-pd-2=http://c:2380")
    assert argv("--join=http://b:2380,http://c:2380") == pd_pod.run(pd_script(cluster())).argv
    assert [] == pd_pod.calls("wget")


@pytest.mark.rule("objects-7.4")
def test_an_empty_join_file_is_no_answer(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/join", "")
    pd_pod.answers("wget", (0, "--join=http://b:2379"))
    assert argv("--join=http://b:2379") == pd_pod.run(pd_script(cluster())).argv


@pytest.mark.rule("objects-7.4")
def test_data_in_a_sub_directory(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/deep er/member/wal/0.wal", "")
    run = pd_pod.run(pd_script(cluster(pd={"dataSubDir": "deep er"})))
    assert argv(data="/deep er") == run.argv


@pytest.mark.parametrize(
    ("tc", "host"),
    [(cluster(clusterDomain="c.local"), LONG), (cluster(acrossK8s=True), HOST), (v2(clusterDomain="c.local"), LONG)],
)
@pytest.mark.rule("objects-7.4")
def test_members_have_long_names_where_clusters_span_networks(pd_pod: Pod, tc: TidbCluster, host: str) -> None:
    pd_pod.answers("dig", (0, "10.0.0.1"))
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    assert argv(host=host, name=host) == pd_pod.run(pd_script(tc)).argv


@pytest.mark.rule("objects-7.3")
def test_asks_discovery_with_certificates_under_mtls(pd_pod: Pod) -> None:
    tls = {"enabled": True, "enableDiscoveryMTLS": True}
    pd_pod.answers("curl", (22, ""), (0, "--join=https://b:2379"))
    run = pd_pod.run(pd_script(cluster(tlsCluster=tls)))
    assert argv("--join=https://b:2379", scheme="https") == run.argv
    certificates = f"{pd_pod.root}/var/lib/pd-tls"
    expected = (
        f"-sS --fail --max-time 3 --cacert {certificates}/ca.crt --cert {certificates}/tls.crt "
        f"--key {certificates}/tls.key https://demo-discovery.ns.svc:10261/new"
    )
    assert [expected] * 2 == [call.rpartition("/")[0] for call in pd_pod.calls("curl")]


@pytest.mark.rule("objects-7.4")
def test_dns_is_tried_once_a_second_until_the_name_resolves(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    pd_pod.answers("nslookup", (1, ""), (1, ""), (0, ""))
    assert pd_pod.run(pd_script(cluster())).argv == argv()
    assert [HOST] * 3 == pd_pod.calls("nslookup")
    assert ["1"] * 3 == pd_pod.calls("sleep")[:-1]


@pytest.mark.parametrize(("timeout", "tries"), [(5, 4), (0, 29)])
@pytest.mark.rule("objects-7.4")
def test_dns_that_never_answers_ends_the_script(pd_pod: Pod, timeout: int, tries: int) -> None:
    pd_pod.answers("nslookup", (1, ""))
    run = pd_pod.run(pd_script(cluster(pd={"startTimeout": timeout})))
    assert (1, None) == (run.code, run.argv)
    assert f"{HOST} did not resolve within {timeout or 30} s" in run.output
    assert tries == len(pd_pod.calls("nslookup"))


@pytest.mark.parametrize("tc", [cluster(pd={"startUpScriptVersion": "v1"}), v2()])
@pytest.mark.rule("objects-7.4")
def test_dig_must_print_an_address(pd_pod: Pod, tc: TidbCluster) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    pd_pod.answers("dig", (0, ""), (9, ";; connection timed out"), (0, "10.0.0.1"))
    assert argv() == pd_pod.run(pd_script(tc)).argv
    assert [f"{HOST} A {HOST} AAAA +search +short"] * 3 == pd_pod.calls("dig")


@pytest.mark.rule("objects-7.4")
def test_the_name_must_resolve_to_this_pod(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    pd_pod.answers("hostname", (0, "10.0.0.11 fd00::1 \n"))
    pd_pod.answers("dig", (0, "10.0.0.1"), (0, ""), (0, "10.0.0.9\nfd00::1"))
    assert pd_pod.run(pd_script(v2("WaitForDnsNameIpMatch"))).argv == argv()
    assert 3 == len(pd_pod.calls("dig"))


@pytest.mark.rule("objects-7.4")
def test_the_initial_wait_is_a_number_of_seconds(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    pd_pod.answers("hostname", (0, "10.0.0.1"))
    pd_pod.answers("dig", (0, "10.0.0.1"))
    pd_pod.run(pd_script(v2("WaitForDnsNameIpMatch", pd={"initWaitTime": 7})))
    assert ["7", "1"] == pd_pod.calls("sleep")[:2]


@pytest.mark.rule("objects-7.1")
def test_no_wait_dns(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    assert pd_pod.run(pd_script(v2("NoWaitDNS", "WaitForDnsNameIpMatch"))).argv == argv()
    assert [] == pd_pod.calls("dig")


@pytest.mark.rule("objects-7.4")
def test_preferred_addresses_are_joined_by_their_client_urls(pd_pod: Pod) -> None:
    pd_pod.answers("dig", (0, "10.0.0.1"))
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    tc = v2(
        "PreferPDAddressesOverDiscovery",
        pdAddresses=["http://a.x:2379", "b.x:1234", "https://c.x"],
        tlsCluster={"enabled": True},
    )
    run = pd_pod.run(pd_script(tc))
    assert argv("--join=https://a.x:2379,https://b.x:2379,https://c.x:2379", scheme="https") == run.argv
    assert [] == pd_pod.calls("wget")


@pytest.mark.rule("objects-7.1")
def test_v1_ignores_feature_flags(pd_pod: Pod) -> None:
    flags = ["PreferPDAddressesOverDiscovery", "NoWaitDNS", "BashShebang"]
    assert pd_script(cluster()) == pd_script(cluster(startScriptV2FeatureFlags=flags, pdAddresses=["http://a:2379"]))


@pytest.mark.rule("objects-7.4")
def test_pd_as_an_api_server_has_a_v2_script(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    pd_pod.answers("hostname", (0, "10.0.0.1"))
    pd_pod.answers("dig", (0, "10.0.0.1"))
    tc = cluster(pd={"mode": "ms"}, pdms=[{"name": "tso", "replicas": 1}])
    server, *flags = argv()
    assert [server, "services", "api", *flags] == pd_pod.run(pd_script(tc)).argv


@pytest.mark.rule("objects-7.1")
def test_bash_shebang() -> None:
    assert "#!/bin/sh" == pd_script(v2()).partition("\n")[0]
    assert "#!/bin/bash" == pd_script(v2("BashShebang")).partition("\n")[0]


@pytest.mark.rule("objects-7.3")
def test_v2_asks_discovery_at_its_short_name(pd_pod: Pod) -> None:
    pd_pod.answers("dig", (0, "10.0.0.1"))
    pd_pod.answers("wget", (0, BEGIN))
    pd_pod.run(pd_script(v2()))
    assert pd_pod.calls("wget")[0].startswith("-qO- -T 3 http://demo-discovery.ns:10261/new/")


@pytest.mark.rule("objects-4.1")
def test_on_the_hosts_network_the_pod_knows_its_name(pd_pod: Pod) -> None:
    pd_pod.env |= {"HOSTNAME": "node-7", "POD_NAME": "demo-pd-0"}
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    assert argv() == pd_pod.run(pd_script(cluster())).argv


def test_the_command_line_is_printed(pd_pod: Pod) -> None:
    pd_pod.write("var/lib/pd/member/wal/0.wal", "")
    run = pd_pod.run(pd_script(cluster()))
    assert f"{' '.join(argv())}\n" in run.output
