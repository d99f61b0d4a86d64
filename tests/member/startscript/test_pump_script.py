"""Pump's start script does what objects.md 7.7 says, under dash and bash."""

from typing import Any

import pytest

from member.startscript import pump_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import Pod
from tests.member.startscript.test_all_scripts import shellcheck

TAIL = """#!/bin/sh\n[ "$1" = -f ] || exec /usr/bin/tail "$@"\n"""
FQDN = "demo-pump-0.demo-pump.ns.svc"


def argv(pd: str, host: str = "demo-pump-0.demo-pump", level: str = "info") -> list[str]:
    flags = [f"-pd-urls={pd}", f"-L={level}", f"-advertise-addr={host}:8250"]
    return ["/pump", *flags, "-config=/etc/pump/pump.toml", "-data-dir=/data", "-log-file="]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, argv("http://demo-pd:2379")),
        ({"tlsCluster": {"enabled": True}}, argv("https://demo-pd:2379")),
        ({"clusterDomain": "c.local"}, argv("http://demo-pd:2379", f"{FQDN}.c.local")),
        ({"without_pd": True, "cluster": {"name": "main", "namespace": "base"}}, argv("http://main-pd.base.svc:2379")),
    ],
)
@pytest.mark.rule("objects-7.7")
def test_flags(pump_pod: Pod, spec: dict[str, Any], expected: list[str]) -> None:
    pump_pod.replaces("tail", TAIL)
    assert expected == pump_pod.run(pump_script(cluster(**spec), "info")).argv
    assert expected == pump_pod.run(pump_script(v2(**spec), "info")).argv


@pytest.mark.rule("objects-7.7")
def test_preferred_addresses_of_pd_are_not_pumps(pump_pod: Pod) -> None:
    pump_pod.replaces("tail", TAIL)
    tc = v2("PreferPDAddressesOverDiscovery", pdAddresses=["http://a:2379"])
    assert argv("http://demo-pd:2379", level="warn") == pump_pod.run(pump_script(tc, "warn")).argv


@pytest.mark.rule("objects-7.7")
def test_asks_discovery_across_kubernetes(pump_pod: Pod) -> None:
    pump_pod.replaces("tail", TAIL)
    pump_pod.answers("wget", (1, ""), (0, "http://demo-pd:2379,http://other:2379"))
    assert (
        argv("http://demo-pd:2379,http://other:2379", FQDN)
        == pump_pod.run(pump_script(cluster(acrossK8s=True), "info")).argv
    )


@pytest.mark.rule("8.8")
def test_a_pump_that_went_offline_is_not_started_again(pump_pod: Pod) -> None:
    pump_pod.replaces("tail", '#!/bin/sh\necho "blocked: $*"\n')
    run = pump_pod.run(pump_script(cluster(), "info"))
    assert (0, True) == (run.code, run.output.endswith("blocked: -f /dev/null\n"))


@pytest.mark.rule("objects-7.7")
def test_a_pump_that_failed_is_started_again_by_kubernetes(pump_pod: Pod) -> None:
    pump_pod.replaces("../pump", "#!/bin/sh\nexit 3\n")
    assert 3 == pump_pod.run(pump_script(cluster(), "info")).code


@pytest.mark.parametrize("tc", [cluster(), cluster(acrossK8s=True, clusterDomain="c.local"), v2(acrossK8s=True)])
def test_the_script_is_clean_posix_shell(tc: Any) -> None:
    assert "" == shellcheck(pump_script(tc, "info"))
