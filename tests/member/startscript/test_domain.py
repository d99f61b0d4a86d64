"""Start scripts say under which domain their pod is known (objects.md 7.4, 7.6)."""

import pytest

from member.observed.running_spec import domain_of
from member.startscript import pd_script, tidb_script, tikv_script
from tests.member.clusters import cluster

V1 = 'url="${tc}-discovery.${NAMESPACE}.svc:10261"\ndomain="${POD_NAME}.${PEER_SERVICE_NAME}.${NAMESPACE}.svc%s"'
V1_TIKV = (
    "--pd=main-pd.svc.other:2379 \\\n--advertise-addr=${POD_NAME}.${HEADLESS_SERVICE_NAME}.${NAMESPACE}.svc%s:20160"
)
V2 = "PD_DOMAIN=${PD_POD_NAME}.demo-pd-peer.ns.svc%s\n# PD_DOMAIN=x.demo-pd-peer.ns.svc.commented"


@pytest.mark.parametrize("version", ["", "v2"])
@pytest.mark.parametrize("script", [pd_script, tikv_script, tidb_script])
@pytest.mark.parametrize("domain", ["", "cluster.local", "a-b.example"])
@pytest.mark.rule("objects-4.1")
def test_our_scripts_say_it(script: object, domain: str, version: str) -> None:
    reference = {"name": "main", "clusterDomain": "other"}
    assert callable(script)
    assert domain == domain_of(script(cluster(clusterDomain=domain, startScriptVersion=version, cluster=reference)))


@pytest.mark.parametrize("text", [V1, V1_TIKV, V2])
@pytest.mark.parametrize("domain", ["", "cluster.local"])
@pytest.mark.rule("objects-4.1")
def test_scripts_of_v1_6_say_it(text: str, domain: str) -> None:
    assert domain == domain_of(text % (f".{domain}" if domain else ""))


@pytest.mark.rule("objects-4.1")
def test_a_script_that_does_not_say_it() -> None:
    assert None is domain_of("#!/bin/sh\nexec /pd-server\n")
