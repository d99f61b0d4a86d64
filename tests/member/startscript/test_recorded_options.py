"""Every option in a start script is a recorded option, so that a user's change is never taken for the operator's."""

from collections.abc import Callable
from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.startscript import pd_script, tidb_script, tikv_script
from member.startscript.servers import pd_options, tidb_options, tikv_options
from tests.member.clusters import TLS, cluster

V2 = {"startScriptVersion": "v2"}
MICROSERVICES = {"pd": {"mode": "ms"}, "pdms": [{"name": "tso", "replicas": 1}]}
FLAGS = ["WaitForDnsNameIpMatch", "PreferPDAddressesOverDiscovery", "BashShebang", "NoWaitDNS"]

CHANGES: list[dict[str, Any]] = [
    {"tlsCluster": TLS},
    {"tlsCluster": TLS | {"enableDiscoveryMTLS": True}},
    {"acrossK8s": True},
    {"acrossK8s": True, "tlsCluster": TLS | {"enableDiscoveryMTLS": True}},
    {"clusterDomain": "example.org"},
    {"preferIPv6": True},
    {"enableDynamicConfiguration": True},
    {"pd": {"dataSubDir": "x"}},
    {"pd": {"startTimeout": 60}},
    {"pd": {"startUpScriptVersion": "v1"}},
    {"tikv": {"dataSubDir": "x"}},
    {"tidb": {"plugins": ["a-1"]}},
    {"tidb": {"arguments": ["--a=b"]}},
    {"tidb": {"binlogEnabled": True}},
    {"tidb": {"slowLogVolumeName": "l", "storageVolumes": [{"name": "l", "storageSize": "1Gi", "mountPath": "/l"}]}},
    {"tidb": {"separateSlowLog": False}},
    V2,
    MICROSERVICES,
    *(V2 | {"startScriptV2FeatureFlags": [flag]} for flag in FLAGS),
    V2 | {"startScriptV2FeatureFlags": FLAGS[:1], "pd": {"startTimeout": 60}},
    V2 | {"startScriptV2FeatureFlags": FLAGS[:1], "pd": {"initWaitTime": 5}},
    V2 | {"startScriptV2FeatureFlags": FLAGS[1:2], "pdAddresses": ["http://a:2379"]},
    V2 | {"tidb": {"binlogEnabled": True}},
    V2 | {"tidb": {"plugins": ["a-1"]}},
    MICROSERVICES | {"startScriptV2FeatureFlags": ["NoWaitDNS"]},
]
REFERENCES: list[dict[str, Any]] = [
    {"cluster": {"name": "a"}},
    {"cluster": {"name": "b"}},
    {"cluster": {"name": "a", "namespace": "other"}},
    {"cluster": {"name": "a", "clusterDomain": "example.org"}},
]


@pytest.mark.parametrize(
    ("script", "options"),
    [(pd_script, pd_options), (tikv_script, tikv_options), (tidb_script, tidb_options)],
    ids=["pd", "tikv", "tidb"],
)
@pytest.mark.rule("7.2")
def test_other_texts_have_other_options(
    script: Callable[[TidbCluster], str], options: Callable[[TidbCluster], Json]
) -> None:
    clusters = [cluster(), *(cluster(**change) for change in CHANGES)]
    if script is not pd_script:
        clusters += [cluster(without=("pd",), **change) for change in REFERENCES]
    _assert_texts_follow_options(clusters, script, options)


def _assert_texts_follow_options(
    clusters: list[TidbCluster], script: Callable[[TidbCluster], str], options: Callable[[TidbCluster], Json]
) -> None:
    texts: dict[str, str] = {}
    for tc in clusters:
        key = repr(sorted(options(tc).items()))
        assert texts.setdefault(key, script(tc)) == script(tc), f"options {key} have two texts"
    assert len(set(texts.values())) > 5


@pytest.mark.rule("6.5")
def test_defaults_are_not_listed() -> None:
    tc = cluster()
    assert [{}, {}, {}] == [pd_options(tc), tikv_options(tc), tidb_options(tc)]
