"""Discovery's objects (objects.md 10.1)."""

import json

import pytest

from apis.tidbcluster import TidbCluster
from member import discovery
from tests.member.clusters import TLS, cluster, container_of, names, pod_of, values


@pytest.mark.parametrize(
    ("tc", "expected"),
    [
        (cluster(), True),
        (cluster(without=("pd",), cluster={"name": "other"}), False),
        (cluster(without=("pd",), acrossK8s=True), True),
    ],
)
@pytest.mark.rule("objects-1.1")
def test_discovery_is_for_clusters_with_pd_or_across_kubernetes(tc: TidbCluster, expected: bool) -> None:
    assert expected == discovery.wanted(tc)


@pytest.mark.rule("objects-10.1")
def test_the_deployment() -> None:
    made = discovery.deployment(cluster(discovery={"labels": {"own": "x"}, "annotations": {"a": "b"}}), "op:1")
    assert (1, {"type": "Recreate"}) == (made["spec"]["replicas"], made["spec"]["strategy"])
    template = made["spec"]["template"]
    assert "own" not in made["spec"]["selector"]["matchLabels"]
    assert (
        template["metadata"]["labels"]
        == discovery.service(cluster(discovery={"labels": {"own": "x"}}))["spec"]["selector"]
    )
    assert {"a": "b"} == template["metadata"]["annotations"]
    record = made["metadata"]["annotations"]["pingcap.com/last-applied-podtemplate"]
    assert template["spec"] == json.loads(record)
    assert "demo-discovery" == template["spec"]["serviceAccountName"]
    container = container_of(made, "discovery")
    assert ("op:1", ["/usr/local/bin/tidb-discovery"]) == (container["image"], container["command"])
    assert {"TZ": "UTC", "TC_NAME": "demo"} == values(container)


@pytest.mark.rule("objects-10.1")
def test_certificates_and_token_are_mounted_after_the_users_mounts() -> None:
    fields = {
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
        "additionalVolumes": [{"name": "x", "emptyDir": {}}],
        "additionalContainers": [{"name": "discovery", "volumeMounts": [{"name": "y", "mountPath": "/y"}]}],
        "automountServiceAccountToken": False,
        "env": [{"name": "A", "value": "a"}],
    }
    made = discovery.deployment(cluster(tlsCluster=TLS | {"enableDiscoveryMTLS": True}, discovery=fields), "op:1")
    container = container_of(made, "discovery")
    special = ["pd-tls", "discovery-tls", "kube-api-access"]
    assert ["y", "x", *special] == names(container["volumeMounts"])
    assert ["x", *special] == names(pod_of(made)["volumes"])
    assert ["MY_POD_NAMESPACE", "TZ", "TC_NAME", "A", "TC_TLS_ENABLED", "DISCOVERY_MTLS_ENABLED"] == names(
        container["env"]
    )
    token = pod_of(made)["volumes"][-1]["projected"]["sources"]
    assert [{"path": "token", "expirationSeconds": 3607}] == [s["serviceAccountToken"] for s in token[:1]]


@pytest.mark.rule("objects-10.1")
def test_probes_only_when_wished_and_only_with_given_times() -> None:
    fields = {"readinessProbe": {"periodSeconds": 5}, "livenessProbe": {"initialDelaySeconds": 3}}
    container = container_of(discovery.deployment(cluster(discovery=fields), "op:1"), "discovery")
    assert {"tcpSocket": {"port": 10261}, "periodSeconds": 5} == container["readinessProbe"]
    assert {"tcpSocket": {"port": 10261}, "initialDelaySeconds": 3} == container["livenessProbe"]
    plain = container_of(discovery.deployment(cluster(), "op:1"), "discovery")
    assert {"readinessProbe", "livenessProbe"}.isdisjoint(plain)


@pytest.mark.rule("objects-10.1")
def test_rights() -> None:
    tc = cluster(tlsCluster=TLS)
    may_read = [
        (rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in discovery.role_of(tc)["rules"]
    ]
    assert [
        (["tidbclusters"], ["demo"], ["get"]),
        (["persistentvolumeclaims"], None, ["list"]),
        (["pods"], None, ["get"]),
        (["secrets"], ["demo-cluster-client-secret"], ["get"]),
    ] == may_read
    binding = discovery.role_binding(tc)
    assert [{"kind": "ServiceAccount", "name": "demo-discovery"}] == binding["subjects"]
    assert "demo-discovery" == binding["roleRef"]["name"] == discovery.service_account(tc)["metadata"]["name"]
