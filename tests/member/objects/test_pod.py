"""The common parts of all components' pods (objects.md 3.3 to 3.7), tested with PD."""

from typing import Any

import pytest

from kube.objects import Json
from member.pd import desired as pd
from member.tikv import desired as tikv
from tests.member.clusters import cluster, container_of, names, pod_of


def _pod(**fields: Any) -> Json:
    return pod_of(pd.stateful_set(cluster(**fields), "cm"))


def _metadata(**fields: Any) -> Json:
    metadata: Json = pd.stateful_set(cluster(**fields), "cm")["spec"]["template"]["metadata"]
    return metadata


@pytest.mark.rule("objects-3.3")
def test_an_empty_spec_gives_a_pod_only_the_operators_fields() -> None:
    assert {"containers", "volumes", "dnsPolicy", "restartPolicy"} == _pod().keys()
    assert ("ClusterFirst", "Always") == (_pod()["dnsPolicy"], _pod()["restartPolicy"])


@pytest.mark.parametrize(
    ("field", "cluster_value", "own_value"),
    [
        ("imagePullSecrets", [{"name": "k"}], [{"name": "c"}]),
        ("affinity", {"nodeAffinity": {"k": 1}}, {"podAffinity": {"c": 1}}),
        ("priorityClassName", "k", "c"),
        ("schedulerName", "k", "c"),
        ("dnsConfig", {"searches": ["k"]}, {"nameservers": ["c"]}),
        ("tolerations", [{"key": "k"}], [{"key": "c"}]),
        ("dnsPolicy", "None", "Default"),
        ("hostNetwork", True, True),
    ],
)
@pytest.mark.rule("objects-3.3")
def test_a_components_setting_replaces_the_clusters(field: str, cluster_value: object, own_value: object) -> None:
    assert cluster_value == _pod(**{field: cluster_value})[field]
    assert own_value == _pod(pd={field: own_value}, **{field: cluster_value})[field]


@pytest.mark.rule("objects-3.3")
def test_pod_security_context_is_replaced_not_merged() -> None:
    both = _pod(podSecurityContext={"fsGroup": 1}, pd={"podSecurityContext": {"runAsUser": 2}})
    assert {"runAsUser": 2} == both["securityContext"]


@pytest.mark.rule("objects-3.3")
def test_node_selectors_merge_by_key() -> None:
    pod = _pod(nodeSelector={"a": "k", "b": "k"}, pd={"nodeSelector": {"b": "c"}})
    assert {"a": "k", "b": "c"} == pod["nodeSelector"]


@pytest.mark.rule("objects-3.3")
def test_base_labels_win_over_the_users() -> None:
    labels = _metadata(labels={"instance": "x"}, pd={"labels": {"app.kubernetes.io/component": "x", "own": "y"}})
    assert {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": "demo",
        "app.kubernetes.io/component": "pd",
        "own": "y",
    } == labels["labels"]


@pytest.mark.rule("objects-3.3")
def test_user_annotations_win_over_the_scrape_hints() -> None:
    annotations = _metadata(annotations={}, pd={"annotations": {"prometheus.io/port": "1", "a": "b"}})["annotations"]
    assert {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": "1",
        "a": "b",
    } == annotations


@pytest.mark.rule("objects-3.3")
def test_host_network_changes_the_dns_policy_and_names_the_pod() -> None:
    stateful_set = pd.stateful_set(cluster(hostNetwork=True), "cm")
    assert "ClusterFirstWithHostNet" == pod_of(stateful_set)["dnsPolicy"]
    assert {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} == container_of(
        stateful_set, "pd"
    )["env"][-1]


@pytest.mark.rule("objects-3.3")
def test_component_only_fields_are_copied() -> None:
    fields = {"terminationGracePeriodSeconds": 60, "automountServiceAccountToken": False, "serviceAccount": "pd"}
    pod = _pod(pd=fields, serviceAccount="all")
    assert (60, False, "pd") == (
        pod["terminationGracePeriodSeconds"],
        pod["automountServiceAccountToken"],
        pod["serviceAccountName"],
    )
    assert "all" == _pod(serviceAccount="all")["serviceAccountName"]


@pytest.mark.rule("objects-3.3")
def test_builtin_variables_win_and_storage_is_no_container_resource() -> None:
    fields = {
        "env": [{"name": "TZ", "value": "mine"}, {"name": "A", "value": "a"}],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "requests": {"storage": "1Gi", "cpu": "1"},
        "limits": {"memory": "2Gi", "storage": "3Gi"},
        "securityContext": {"runAsUser": 1},
        "imagePullPolicy": "Always",
    }
    container = container_of(pd.stateful_set(cluster(pd=fields, timezone="UTC"), "cm"), "pd")
    assert ["NAMESPACE", "PEER_SERVICE_NAME", "SERVICE_NAME", "SET_NAME", "TZ", "A"] == names(container["env"])
    assert {"name": "TZ", "value": "UTC"} == container["env"][4]
    assert {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}} == container["resources"]
    assert [{"secretRef": {"name": "s"}}] == container["envFrom"]
    assert ({"runAsUser": 1}, "Always") == (container["securityContext"], container["imagePullPolicy"])


@pytest.mark.rule("objects-4.1")
def test_an_empty_time_zone_is_written_as_v16_does() -> None:
    assert {"name": "TZ"} == container_of(pd.stateful_set(cluster(), "cm"), "pd")["env"][-1]


@pytest.mark.rule("objects-3.4")
def test_spread_constraints_select_the_instance() -> None:
    wish = [{"topologyKey": "zone", "matchLabels": {"ignored": "x"}}]
    pod = _pod(topologySpreadConstraints=wish, labels={"app.kubernetes.io/instance": "prod"})
    selector = pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert ("prod", "pd") == (selector["app.kubernetes.io/instance"], selector["app.kubernetes.io/component"])


@pytest.mark.rule("objects-3.5")
def test_user_containers_and_volumes_come_after_the_generated_ones() -> None:
    fields = {
        "initContainers": [{"name": "mine", "image": "i"}],
        "additionalContainers": [{"name": "extra", "image": "i"}, {"name": "pd", "tty": True}],
        "additionalVolumes": [{"name": "annotations", "emptyDir": {}}],
        "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}],
    }
    pod = _pod(pd=fields)
    assert ["mine"] == names(pod["initContainers"])
    assert ["pd", "extra"] == names(pod["containers"])
    assert pod["containers"][0]["tty"] is True
    assert ["annotations", "config", "startup-script", "annotations"] == names(pod["volumes"])
    assert {"name": "x", "mountPath": "/x"} == pod["containers"][0]["volumeMounts"][-1]


@pytest.mark.rule("objects-3.6")
def test_sysctls_move_into_a_privileged_init_container() -> None:
    fields = {
        "annotations": {"tidb.pingcap.com/sysctl-init": "true"},
        "podSecurityContext": {"sysctls": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]},
        "limits": {"cpu": "1"},
        "initContainers": [{"name": "mine"}],
    }
    stateful_set = tikv.stateful_set(cluster(tikv=fields, helper={"image": "h:1"}), "cm")
    pod = pod_of(stateful_set)
    assert {
        "name": "init",
        "image": "h:1",
        "command": ["sh", "-c", "sysctl -w a=1 b=2"],
        "securityContext": {"privileged": True},
        "resources": {"limits": {"cpu": "1"}},
    } == pod["initContainers"][0]
    assert ["init", "mine"] == names(pod["initContainers"])
    assert {} == pod["securityContext"]
    assert "true" == stateful_set["spec"]["template"]["metadata"]["annotations"]["tidb.pingcap.com/sysctl-init"]


@pytest.mark.rule("objects-3.6")
def test_without_the_annotation_sysctls_stay() -> None:
    context = {"sysctls": [{"name": "a", "value": "1"}]}
    pod = _pod(pd={"podSecurityContext": context})
    assert context == pod["securityContext"]
    assert "initContainers" not in pod


@pytest.mark.rule("objects-3.7")
def test_annotations_reach_the_start_script_through_a_volume() -> None:
    pod = _pod()
    assert {
        "name": "annotations",
        "downwardAPI": {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]},
    } == pod["volumes"][0]
    assert {"name": "annotations", "mountPath": "/etc/podinfo", "readOnly": True} == pod["containers"][0][
        "volumeMounts"
    ][0]
