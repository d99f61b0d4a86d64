"""The start script of PD's microservices does what objects.md 7.5 says, under dash and bash."""

from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from member.startscript import pdms_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import Pod
from tests.member.startscript.test_all_scripts import shellcheck

HOST = "demo-tso-0.demo-tso-peer.ns.svc"


def micro(make: Any = cluster, *flags: str, **spec: Any) -> TidbCluster:
    entry = {"name": "tso", "replicas": 1, "baseImage": "pingcap/pd"}
    made: TidbCluster = make(*flags, pd={"mode": "ms"}, pdms=[entry], **spec)
    return made


def argv(pd: str, host: str = HOST, scheme: str = "http", name: str = "demo-tso-0") -> list[str]:
    own = [f"--name={name}"] if name else []
    flags = [f"--listen-addr={scheme}://0.0.0.0:2379", f"--advertise-listen-addr={scheme}://{host}:2379"]
    return ["/pd-server", "services", "tso", *own, *flags, f"--backend-endpoints={pd}", "--config=/etc/pd/pd.toml"]


@pytest.fixture
def tso_pod(pd_pod: Pod) -> Pod:
    """A pod of tso, whose name resolves to its address."""
    pd_pod.env |= {"HOSTNAME": "demo-tso-0"}
    pd_pod.answers("hostname", (0, "10.0.0.1"))
    pd_pod.answers("dig", (0, "10.0.0.1"))
    return pd_pod


@pytest.mark.parametrize("make", [cluster, v2])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"version": "v8.5.0"}, argv("http://demo-pd:2379")),
        ({"version": "v8.2.0"}, argv("http://demo-pd:2379", name="")),
        ({"tlsCluster": {"enabled": True}, "version": "v8.5.0"}, argv("https://demo-pd:2379", scheme="https")),
        (
            {"clusterDomain": "c.local", "version": "v8.5.0"},
            argv("http://demo-pd:2379", f"{HOST}.c.local", name=f"{HOST}.c.local"),
        ),
    ],
)
@pytest.mark.rule("objects-7.5")
def test_flags(tso_pod: Pod, make: Any, spec: dict[str, Any], expected: list[str]) -> None:
    assert expected == tso_pod.run(pdms_script(micro(make, **spec), "tso")).argv


@pytest.mark.rule("objects-7.1")
def test_the_preferred_addresses_are_heeded_in_both_generations(tso_pod: Pod) -> None:
    flags = {"startScriptV2FeatureFlags": ["PreferPDAddressesOverDiscovery"], "pdAddresses": ["http://a:1", "b"]}
    run = tso_pod.run(pdms_script(micro(version="v8.5.0", **flags), "tso"))
    assert argv("http://a:2379,http://b:2379") == run.argv


@pytest.mark.rule("objects-7.5")
def test_waits_for_its_own_address(tso_pod: Pod) -> None:
    tso_pod.answers("dig", (0, "10.0.0.9"), (0, "10.0.0.1"))
    assert argv("http://demo-pd:2379") == tso_pod.run(pdms_script(micro(version="v8.5.0"), "tso")).argv
    assert 2 == len(tso_pod.calls("dig"))


@pytest.mark.parametrize("tc", [micro(), micro(acrossK8s=True, clusterDomain="c.local"), micro(v2, acrossK8s=True)])
def test_the_script_is_clean_posix_shell(tc: TidbCluster) -> None:
    assert "" == shellcheck(pdms_script(tc, "tso"))
