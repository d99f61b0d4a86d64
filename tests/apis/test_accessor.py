"""Cluster level and component level merged (defaults-and-validation.md 6, objects.md 3.3)."""

from typing import Any

import pytest

from apis.accessor import AbsentComponent, Component, component, components, container_resources
from apis.shared import Json
from tests.apis.clusters import cluster, minimal


def pd(cluster_level: Json, own: Json) -> Component:
    return component(cluster({**minimal(pd=own), **cluster_level}), "pd")


@pytest.mark.parametrize(
    ("attribute", "field", "high", "low"),
    [
        ("image_pull_policy", "imagePullPolicy", "Always", "Never"),
        ("affinity", "affinity", {"a": 1}, {"b": 2}),
        ("priority_class_name", "priorityClassName", "high", "low"),
        ("scheduler_name", "schedulerName", "mine", ""),
        ("pod_security_context", "podSecurityContext", {"a": 1}, {}),
        ("dns_config", "dnsConfig", {"a": 1}, {"b": 2}),
        ("host_network", "hostNetwork", True, False),
        ("image_pull_secrets", "imagePullSecrets", [{"name": "a"}], [{"name": "b"}]),
        ("tolerations", "tolerations", [{"key": "a"}], [{"key": "b"}]),
        ("stateful_set_update_strategy", "statefulSetUpdateStrategy", "OnDelete", "RollingUpdate"),
        ("pod_management_policy", "podManagementPolicy", "OrderedReady", "Parallel"),
        ("config_update_strategy", "configUpdateStrategy", "RollingUpdate", "InPlace"),
        ("dns_policy", "dnsPolicy", "None", "Default"),
        ("service_account", "serviceAccount", "a", "b"),
    ],
)
def test_component_replaces_cluster(attribute: str, field: str, high: Any, low: Any) -> None:
    assert high == getattr(pd({field: high}, {}), attribute)
    assert low == getattr(pd({field: high}, {field: low}), attribute)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("host_network", False),
        ("dns_policy", "ClusterFirst"),
        ("pod_management_policy", "Parallel"),
        ("stateful_set_update_strategy", "RollingUpdate"),
        ("config_update_strategy", "InPlace"),
        ("scheduler_name", ""),
        ("affinity", None),
        ("suspended", False),
        ("tolerations", []),
        ("node_selector", {}),
    ],
)
def test_attributes_have_defaults(attribute: str, expected: Any) -> None:
    assert expected == getattr(pd({}, {}), attribute)


def test_maps_merge_by_key_and_the_component_wins() -> None:
    cluster_level = {"labels": {"a": "1", "b": "1"}, "annotations": {"a": "1"}, "nodeSelector": {"a": "1"}}
    own = {"labels": {"b": "2"}, "annotations": {"b": "2"}, "nodeSelector": {"a": "2"}}
    found = pd(cluster_level, own)
    assert ({"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "2"}) == (
        found.labels,
        found.annotations,
        found.node_selector,
    )


def test_empty_list_and_empty_strategy_of_a_component() -> None:
    found = pd({"tolerations": [{"key": "a"}], "configUpdateStrategy": "RollingUpdate"}, {})
    emptied = pd(
        {"tolerations": [{"key": "a"}], "configUpdateStrategy": "RollingUpdate"},
        {"tolerations": [], "configUpdateStrategy": ""},
    )
    assert ([{"key": "a"}], "RollingUpdate") == (found.tolerations, found.config_update_strategy)
    assert ([{"key": "a"}], "InPlace") == (emptied.tolerations, emptied.config_update_strategy)


def test_host_network_changes_the_dns_policy() -> None:
    assert "ClusterFirstWithHostNet" == pd({"hostNetwork": True}, {}).dns_policy


def test_only_the_exact_word_gives_ordered_ready_which_is_pumps_default() -> None:
    tc = cluster(minimal(pd={"podManagementPolicy": "orderedready"}, pump={"replicas": 1}))
    assert ["Parallel", "OrderedReady"] == [component(tc, name).pod_management_policy for name in ("pd", "pump")]


def test_suspend_action_of_the_component_replaces_the_clusters() -> None:
    suspend = {"suspendAction": {"suspendStatefulSet": True}}
    assert pd(suspend, {}).suspended
    assert not pd(suspend, {"suspendAction": {}}).suspended


def test_pd_microservices_fall_back_to_the_service_account_of_the_cluster() -> None:
    tc = cluster({"serviceAccount": "all", "pdms": [{"name": "tso", "replicas": 1}]})
    assert "all" == component(tc, "tso").service_account


def test_spread_rules_select_by_instance_name_and_the_entry_overrides_two_labels() -> None:
    constraints = [
        {"topologyKey": "zone"},
        {
            "topologyKey": "host",
            "maxSkew": 2,
            "minDomains": 3,
            "nodeAffinityPolicy": "Honor",
            "matchLabels": {"app.kubernetes.io/component": "tikv", "other": "x"},
        },
    ]
    labels = {"app.kubernetes.io/instance": "legacy"}
    tc = cluster({**minimal(), "topologySpreadConstraints": constraints}, labels=labels)
    selected = {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/component": "pd",
        "app.kubernetes.io/instance": "legacy",
    }
    zone, host = component(tc, "pd").topology_spread_constraints
    assert {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": selected},
    } == zone
    assert (2, 3, "Honor") == (host["maxSkew"], host["minDomains"], host["nodeAffinityPolicy"])
    assert {**selected, "app.kubernetes.io/component": "tikv"} == host["labelSelector"]["matchLabels"]
    assert (
        "discovery"
        == component(tc, "discovery").topology_spread_constraints[0]["labelSelector"]["matchLabels"][
            "app.kubernetes.io/component"
        ]
    )


def test_builtin_environment_wins_over_the_users() -> None:
    found = pd({}, {"env": [{"name": "TZ", "value": "x"}, {"name": "B", "value": "y"}]})
    assert [{"name": "TZ", "value": "UTC"}, {"name": "B", "value": "y"}] == found.env([{"name": "TZ", "value": "UTC"}])


def test_container_gets_no_storage() -> None:
    found = pd({}, {"requests": {"cpu": 1, "storage": "1Gi"}, "limits": {"storage": "2Gi"}})
    assert {"requests": {"cpu": 1}} == found.resources
    assert "1Gi" == found.storage_request
    assert {} == container_resources({}, {})


def test_components_have_a_fixed_order_that_begins_with_discovery() -> None:
    spec = minimal(tiproxy={"replicas": 1}, tiflash={"replicas": 1, "storageClaims": []})
    tc = cluster({**spec, "pdms": [{"name": "scheduling", "replicas": 1}, {"name": "tso", "replicas": 1}]})
    assert [
        ("discovery", "spec.discovery"),
        ("tso", "spec.pdms[1]"),
        ("scheduling", "spec.pdms[0]"),
        ("pd", "spec.pd"),
        ("tiproxy", "spec.tiproxy"),
        ("tiflash", "spec.tiflash"),
        ("tikv", "spec.tikv"),
        ("tidb", "spec.tidb"),
    ] == [(found.name, found.field) for found in components(tc)]


def test_absent_component_is_an_error_that_names_the_cluster() -> None:
    with pytest.raises(AbsentComponent, match="ns/basic has no spec for tiflash"):
        component(cluster(minimal()), "tiflash")


def test_discovery_has_neither_image_nor_replicas() -> None:
    discovery = component(cluster(minimal()), "discovery")
    assert "" == discovery.image
    with pytest.raises(TypeError, match="discovery has no replicas"):
        _ = discovery.workload


def test_tiflash_reads_its_configuration_from_config_config() -> None:
    tiflash = {"replicas": 1, "storageClaims": [], "config": {"config": {"a": 1}, "proxy": {"b": 1}}}
    found = component(cluster(minimal(tiflash=tiflash)), "tiflash")
    assert ({"a": 1}, "spec.tiflash.config.config") == (found.config_tables(), found.config_field)


def test_reads_fields_that_only_components_have() -> None:
    own = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 9,
        "securityContext": {"runAsUser": 1},
        "envFrom": [{"secretRef": {"name": "a"}}],
    }
    found = pd({}, {**own, "version": "v7.1.0"})
    assert list(own.values()) == [
        found.automount_service_account_token,
        found.termination_grace_period_seconds,
        found.security_context,
        found.env_from,
    ]
    assert "v7.1.0" == found.version
