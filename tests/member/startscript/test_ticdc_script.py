"""TiCDC's start script (objects.md 7.7)."""

from pathlib import Path
from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from member.ticdc.desired import start_script as script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import SHELLS, Pod, pod_of

USUAL = [
    "/cdc",
    "server",
    "--addr=0.0.0.0:8301",
    "--advertise-addr=demo-ticdc-0.demo-ticdc-peer.ns.svc:8301",
    "--gc-ttl=86400",
    "--log-file=",
    "--log-level=info",
    "--pd=http://demo-pd:2379",
]
TLS = ["--ca=/var/lib/ticdc-tls/ca.crt", "--cert=/var/lib/ticdc-tls/tls.crt", "--key=/var/lib/ticdc-tls/tls.key"]


def replicating(**spec: Any) -> TidbCluster:
    return cluster(ticdc={"replicas": 2} | spec.pop("ticdc", {}), **spec)


@pytest.fixture(params=SHELLS)
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    return pod_of("ticdc", tmp_path, request.param)


@pytest.mark.rule("objects-7.7")
def test_its_flags(pod: Pod) -> None:
    (pod.root / "etc/podinfo/annotations").unlink()  # v1 has none
    assert USUAL == pod.run(script(replicating())).argv


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ({"gcTTL": 7, "logLevel": "warn", "logFile": "/l"}, ["--gc-ttl=7", "--log-file=/l", "--log-level=warn"]),
        ("gc-ttl = 'long'\nlog-level = 1\n", ["--gc-ttl=86400", "--log-file=", "--log-level=info"]),
    ],
)
@pytest.mark.rule("objects-7.7")
def test_flags_of_the_configuration_unless_wrongly_typed(pod: Pod, config: object, flags: list[str]) -> None:
    argv = pod.run(script(replicating(ticdc={"config": config}))).argv
    assert argv is not None
    assert [*USUAL[:4], *flags, USUAL[-1]] == argv


@pytest.mark.rule("objects-7.7")
def test_certificates_and_a_configuration_are_flags_too(pod: Pod) -> None:
    tc = replicating(ticdc={"config": "data-dir = '/d'\n"}, tlsCluster={"enabled": True}, clusterDomain="c.local")
    argv = pod.run(script(tc)).argv
    assert argv is not None
    assert ["--pd=https://demo-pd:2379", *TLS, "--config=/etc/ticdc/ticdc.toml"] == argv[-5:]
    assert argv[3].endswith(".ns.svc.c.local:8301")


@pytest.mark.rule("objects-7.3")
def test_preferred_addresses_of_pd_stay_as_they_are_written(pod: Pod) -> None:
    tc = v2("PreferPDAddressesOverDiscovery", pdAddresses=["http://a:1", "http://b:2"], ticdc={"replicas": 1})
    argv = pod.run(script(tc)).argv
    assert argv is not None
    assert "--pd=http://a:1,http://b:2" == argv[-1]


@pytest.mark.rule("objects-7.3")
def test_across_kubernetes_discovery_says_where_pd_is(pod: Pod) -> None:
    pod.answers("wget", (0, "http://demo-pd-0.elsewhere:2379"))
    argv = pod.run(script(replicating(acrossK8s=True))).argv
    assert argv is not None
    assert "--pd=http://demo-pd-0.elsewhere:2379" == argv[-1]


@pytest.mark.rule("objects-3.7")
def test_debug_mode_starts_nothing(pod: Pod) -> None:
    pod.write("etc/podinfo/annotations", 'runmode="debug"')
    pod.replaces("tail", '#!/bin/sh\necho "blocked: $*"\n')
    run = pod.run(script(v2(ticdc={"replicas": 1})))
    assert ("entering debug mode\nblocked: -f /dev/null\n", None) == (run.output, run.argv)
