"""The scripts in TiFlash's pods do what objects.md 7.6 says, under dash and bash."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from member.startscript import tiflash_init_script, tiflash_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import SHELLS, Pod, pod_of
from tests.member.startscript.test_all_scripts import shellcheck

HOST = "demo-tiflash-0.demo-tiflash-peer.ns.svc"
SERVER = ["/tiflash/tiflash", "server", "--config-file"]
MTLS = {"enabled": True, "enableDiscoveryMTLS": True}


@pytest.fixture(params=SHELLS)
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    found = pod_of("tiflash", tmp_path, request.param)
    found.env["POD_NAME"] = "demo-tiflash-0"
    found.write("etc/tiflash/config_templ.toml", 'a = "demo-tiflash-POD_NUM.x"\nb = "PD_ADDR"\n')
    found.write("etc/tiflash/proxy_templ.toml", 'c = "POD_NUM"\n')
    found.write("data0/there", "")
    return found


def filled_in(pod: Pod) -> list[str]:
    return [(pod.root / f"data0/{name}.toml").read_text() for name in ("config", "proxy")]


@pytest.mark.rule("objects-7.6")
def test_the_init_container_inserts_the_number_of_the_pod(pod: Pod) -> None:
    assert 0 == pod.run(tiflash_init_script(cluster())).code
    assert ['a = "demo-tiflash-0.x"\nb = "PD_ADDR"\n', 'c = "0"\n'] == filled_in(pod)


@pytest.mark.parametrize(("tls", "tool"), [({}, "wget"), ({"tlsCluster": MTLS}, "curl")])
@pytest.mark.rule("objects-7.6")
def test_across_kubernetes_it_asks_discovery_for_pd(pod: Pod, tls: dict[str, Any], tool: str) -> None:
    pod.answers(tool, (1, ""), (0, "http://demo-pd:2379,https://far-pd:2379"))
    assert 0 == pod.run(tiflash_init_script(cluster(acrossK8s=True, **tls))).code
    assert 'b = "demo-pd:2379,far-pd:2379"\n' == filled_in(pod)[0].splitlines(keepends=True)[1]
    scheme = "https" if tls else "http"
    asked = base64.b64encode(f"{scheme}://demo-pd:2379\n".encode()).decode()
    assert pod.calls(tool)[-1].endswith(f"{scheme}://demo-discovery.ns:10261/verify/{asked}")


@pytest.mark.rule("objects-7.6")
def test_the_container_runs_with_the_completed_templates(pod: Pod) -> None:
    assert "/tiflash/tiflash server --config-file /data0/config.toml" == tiflash_script(cluster(), config_mounted=False)
    assert [*SERVER, "/data0/config.toml"] == pod.run(tiflash_script(v2(), config_mounted=False)).argv


@pytest.mark.parametrize(("make", "pd"), [(cluster, "http://demo-pd:2379"), (v2, "demo-pd:2379")])
@pytest.mark.rule("objects-7.6")
def test_with_a_mounted_config_map_flags_pass_the_pods_addresses(
    pod: Pod, make: Callable[..., TidbCluster], pd: str
) -> None:
    flags = [
        f"--flash.proxy.advertise-addr={HOST}:20170",
        f"--flash.service_addr={HOST}:3930",
        f"--raft.pd_addr={pd}",
    ]
    command = [*SERVER, "/etc/tiflash/config_templ.toml", "--"]
    assert [*command, *flags] == pod.run(tiflash_script(make(), config_mounted=True)).argv
    pod.env["STORE_LABELS"] = "zone=a,host=b"
    flags.insert(1, f"--flash.proxy.advertise-status-addr={HOST}:20292")
    argv = pod.run(tiflash_script(make(enableDynamicConfiguration=True), config_mounted=True)).argv
    assert [*command, *flags, "--labels", "zone=a,host=b"] == argv


@pytest.mark.parametrize("tc", [cluster(), v2(acrossK8s=True), cluster(acrossK8s=True, tlsCluster=MTLS)])
def test_scripts_of_tiflash_are_clean_posix_shell(tc: TidbCluster) -> None:
    assert ["", ""] == [shellcheck(tiflash_init_script(tc)), shellcheck(tiflash_script(tc, config_mounted=True))]
