"""The monitored clusters, and the reports about missing ones (other-resources.md 3.2, 3.5, 3.7)."""

import base64
from typing import Any

import pytest
import yaml

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DM_CLUSTERS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    SECRETS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from tests.controllers.tidbmonitor.monitors import CONTAINERS, Monitors, monitor
from tests.operator_world import NAMESPACE, OperatorWorld, sample

KEYS = {"ca.crt": b"CA", "tls.crt": b"CERT", "tls.key": b"KEY"}


def configuration(monitors: Monitors) -> Json:
    data = monitors.world.get(CONFIG_MAPS, "basic-monitor")["data"]
    tree: Json = yaml.safe_load(data["prometheus.yml"])
    return tree


def jobs(monitors: Monitors) -> set[str]:
    """The clusters that have jobs."""
    names = [each["job_name"] for each in configuration(monitors)["scrape_configs"]]
    return {each.removesuffix("-tikv") for each in names if each.endswith("-tikv")}


def secret(name: str, data: dict[str, bytes]) -> Json:
    return {"metadata": {"name": name}, "data": {key: base64.b64encode(text).decode() for key, text in data.items()}}


def other(name: str, labels: Json | None = None, **spec: Any) -> Json:
    """A cluster that need not come up."""
    body = sample("basic")
    return body | {"metadata": {"name": name, "labels": labels or {}}, "spec": body["spec"] | {"paused": True} | spec}


@pytest.mark.rule("MON-1")
def test_jobs_for_full_text_search_come_with_spec_tici(world: OperatorWorld) -> None:
    monitors = Monitors(world)
    world.apply(other("basic"))
    monitors.create(monitor())
    world.run_until(lambda: world.exists(CONFIG_MAPS, "basic-monitor"), 30.0)
    before = world.get(CONFIG_MAPS, "basic-monitor")["data"]
    assert "tici" not in str(before)
    servers = {"baseImage": "pingcap/tici", "version": "v9.0.0", "replicas": 1}
    world.change(tici={"meta": servers, "worker": servers})
    world.run_until(lambda: "basic-tici-worker" in str(world.get(CONFIG_MAPS, "basic-monitor")["data"]), 30.0)
    world.change(tici=None)
    world.run_until(lambda: world.get(CONFIG_MAPS, "basic-monitor")["data"] == before, 30.0)


@pytest.mark.rule("other-resources-3.2")
def test_a_monitor_may_come_before_its_cluster(world: OperatorWorld) -> None:
    monitors = Monitors(world)
    monitors.create(monitor())
    world.run(5.0)
    status, reason, message = monitors.condition()
    assert ("True", "ClusterMissing") == (status, reason)
    assert "waiting for TidbCluster default/basic, which does not exist" in message
    assert not world.exists(STATEFUL_SETS, "basic-monitor")
    assert not world.exists(CONFIG_MAPS, "basic-monitor")
    world.apply(sample("basic"))
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-monitor"), 5.0)
    monitors.run_until_ready()


@pytest.mark.rule("other-resources-3.2")
def test_a_cluster_that_is_missing_keeps_no_other_from_being_monitored(monitors: Monitors) -> None:
    monitors.create(monitor(clusters=[{"name": "gone"}, {"name": "basic"}]))
    monitors.world.run(20.0)
    assert {"default-basic"} == jobs(monitors)
    assert "ClusterMissing" == monitors.condition()[1]
    assert ("False", "ClusterMissing") == monitors.condition("Ready")[:2]
    monitors.world.apply(other("gone"))
    monitors.run_until_ready()
    assert {"default-basic", "default-gone"} == jobs(monitors)


@pytest.mark.rule("other-resources-3.2")
def test_the_monitor_stays_when_its_cluster_is_deleted(monitors: Monitors) -> None:
    monitors.create(monitor())
    monitors.run_until_ready()
    before = configuration(monitors)
    monitors.world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    monitors.world.run_until(lambda: monitors.condition()[1] == "ClusterMissing")
    assert before == configuration(monitors)
    assert monitors.world.exists(STATEFUL_SETS, "basic-monitor")


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.5")
def test_clusters_are_selected_by_label_as_they_come_and_go(monitors: Monitors) -> None:
    world = monitors.world
    monitors.create(monitor(annotations={"tidb.pingcap.com/cluster-selector": "team=a"}, clusters=None))
    world.run(2.0)
    assert "ClusterMissing" == monitors.condition()[1]
    world.apply(other("one", {"team": "a"}))
    world.apply(other("two", {"team": "b"}))
    world.run_until(lambda: world.exists(CONFIG_MAPS, "basic-monitor"), 5.0)
    assert {"default-one"} == jobs(monitors)
    world.admin.patch(TIDB_CLUSTERS, "two", NAMESPACE, {"metadata": {"labels": {"team": "a"}}})
    world.run(1.0)
    assert {"default-one", "default-two"} == jobs(monitors)
    world.admin.delete(TIDB_CLUSTERS, "one", NAMESPACE)
    world.run_until(lambda: jobs(monitors) == {"default-two"})
    monitors.annotate(cluster_selector="*")
    world.run(1.0)
    assert {"default-two", "default-basic"} == jobs(monitors)


def named(monitors: Monitors, variable: str = "TIDB_CLUSTER_NAME") -> str:
    """The cluster that gives rules and dashboards their names."""
    pod = monitors.world.get(STATEFUL_SETS, "basic-monitor")["spec"]["template"]["spec"]
    env = {each["name"]: each.get("value", "") for container in pod["initContainers"] for each in container["env"]}
    return str(env[variable])


def pod(monitors: Monitors) -> str:
    uid: str = monitors.world.get(PODS, "basic-monitor-0")["metadata"]["uid"]
    return uid


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.6")
def test_a_selected_cluster_that_sorts_first_restarts_no_pod(monitors: Monitors) -> None:
    world = monitors.world
    world.apply(other("prod", {"team": "a"}))
    monitors.create(monitor(annotations={"tidb.pingcap.com/cluster-selector": "team=a"}, clusters=None))
    monitors.run_until_ready()
    before = pod(monitors)
    world.apply(other("beta", {"team": "a"}))
    world.run(60.0)
    assert ({"default-beta", "default-prod"}, "prod", before) == (jobs(monitors), named(monitors), pod(monitors))
    world.admin.delete(TIDB_CLUSTERS, "prod", NAMESPACE)
    world.run(60.0)
    assert ({"default-beta"}, "prod", before) == (jobs(monitors), named(monitors), pod(monitors))
    monitors.change(labels={"a": "b"})
    world.run_until(lambda: pod(monitors) != before)
    assert "beta" == named(monitors)


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.6")
def test_a_named_cluster_that_goes_and_returns_restarts_no_pod(monitors: Monitors) -> None:
    world = monitors.world
    world.apply(other("old", timezone="Asia/Tokyo"))
    monitors.create(monitor(clusters=[{"name": "old"}, {"name": "basic"}]))
    monitors.run_until_ready()
    before = pod(monitors)
    world.admin.delete(TIDB_CLUSTERS, "old", NAMESPACE)
    world.run(60.0)
    assert ("old", "Asia/Tokyo", before) == (named(monitors), named(monitors, "TZ"), pod(monitors))
    world.apply(other("old", timezone="Asia/Tokyo"))
    world.run(60.0)
    assert ("old", before) == (named(monitors), pod(monitors))


@pytest.mark.rule("other-resources-3.6")
def test_a_cluster_that_is_named_no_longer_gives_no_names(monitors: Monitors) -> None:
    monitors.world.apply(other("old"))
    monitors.create(monitor(clusters=[{"name": "old"}, {"name": "basic"}]))
    monitors.run_until_ready()
    monitors.change(clusters=[{"name": "basic"}])
    monitors.world.run_until(lambda: named(monitors) == "basic")


@pytest.mark.rule("other-resources-3.6")
def test_dm_clusters_that_go_and_return_restart_no_pod(monitors: Monitors) -> None:
    world = monitors.world
    of_kind = {"apiVersion": DM_CLUSTERS.api_version, "kind": DM_CLUSTERS.kind}
    spec = {"version": "v8.5.2", "paused": True, "discovery": {}, "master": {"replicas": 1, "baseImage": "pingcap/dm"}}
    world.admin.create(DM_CLUSTERS, of_kind | {"metadata": {"name": "sync"}, "spec": spec}, NAMESPACE)
    monitors.create(monitor(dm={"clusters": [{"name": "sync"}], "initializer": CONTAINERS["initializer"]}))
    monitors.run_until_ready()
    before = pod(monitors)
    world.admin.delete(DM_CLUSTERS, "sync", NAMESPACE)
    world.run_until(lambda: monitors.condition()[1] == "ClusterMissing")
    world.run(30.0)
    assert ("sync", before) == (named(monitors, "DM_CLUSTER_NAME"), pod(monitors))


@pytest.mark.rule("other-resources-3.2")
def test_certificates_of_clusters_with_tls_are_files_for_prometheus(monitors: Monitors) -> None:
    world = monitors.world
    world.apply(other("safe", tlsCluster={"enabled": True}))
    monitors.create(monitor(clusters=[{"name": "basic"}, {"name": "safe"}]))
    world.run(5.0)
    assert "ReferenceMissing" == monitors.condition()[1]
    assert "Secret default/safe-cluster-client-secret with the client certificate of" in monitors.condition()[2]
    world.admin.create(SECRETS, secret("safe-cluster-client-secret", KEYS), NAMESPACE)
    monitors.run_until_ready()
    assets = world.get(SECRETS, "tidbmonitor-basic-tls-assets")["data"]
    assert {f"secret_default_safe-cluster-client-secret_{key}" for key in KEYS} == assets.keys()
    monitors.change(clusters=[{"name": "basic"}])
    world.run(2.0)
    assert not world.get(SECRETS, "tidbmonitor-basic-tls-assets").get("data")


@pytest.mark.rule("other-resources-3.7")
def test_a_password_is_a_file_and_stands_in_no_config_map(monitors: Monitors) -> None:
    world = monitors.world
    auth = {"username": {"name": "mimir", "key": "user"}, "password": {"name": "mimir", "key": "password"}}
    tls = {"ca": {"configMap": {"name": "authority", "key": "ca.crt"}}, "serverName": "mimir"}
    endpoint = {"url": "https://mimir.example.com/push", "basicAuth": auth, "tlsConfig": tls}
    monitors.create(monitor(prometheus=CONTAINERS["prometheus"] | {"remoteWrite": [endpoint]}))
    world.run(2.0)
    assert "has no" in monitors.condition()[2] or "does not exist" in monitors.condition()[2]
    world.admin.create(SECRETS, secret("mimir", {"user": b"ada\n", "password": b"secret!"}), NAMESPACE)
    world.admin.create(CONFIG_MAPS, {"metadata": {"name": "authority"}, "data": {"ca.crt": "PEM"}}, NAMESPACE)
    monitors.run_until_ready()
    (made,) = configuration(monitors)["remote_write"]
    files = "/var/lib/cluster-assets-tls"
    password = "secret_default_mimir_password"
    assert {"username": "ada", "password_file": f"{files}/{password}"} == made["basic_auth"]
    authority = {"ca_file": f"{files}/configmap_default_authority_ca.crt", "server_name": "mimir"}
    assert authority == made["tls_config"]
    assets = world.get(SECRETS, "tidbmonitor-basic-tls-assets")["data"]
    assert b"secret!" == base64.b64decode(assets[password])
    assert b"PEM" == base64.b64decode(assets["configmap_default_authority_ca.crt"])


@pytest.mark.rule("other-resources-3.5")
def test_a_config_map_replaces_the_whole_configuration(monitors: Monitors) -> None:
    config = {"configMapRef": {"name": "mine"}}
    monitors.create(monitor(prometheus=CONTAINERS["prometheus"] | {"config": config}))
    monitors.world.run(2.0)
    assert "ConfigMap default/mine with the configuration of Prometheus does not exist" in monitors.condition()[2]
    body = {"metadata": {"name": "mine"}, "data": {"prometheus-config": "global: {}\n"}}
    monitors.world.admin.create(CONFIG_MAPS, body, NAMESPACE)
    monitors.run_until_ready()
    assert {"global": {}} == configuration(monitors)


@pytest.mark.rule("other-resources-3.5")
def test_a_dm_cluster_that_is_not_there_is_waited_for(monitors: Monitors) -> None:
    dm = {"clusters": [{"name": "sync"}], "initializer": CONTAINERS["initializer"]}
    monitors.create(monitor(dm=dm))
    monitors.world.run(5.0)
    assert "waiting for DMCluster default/sync" in monitors.condition()[2]
    assert {"default-basic"} == jobs(monitors)


@pytest.mark.rule("other-resources-3.2")
def test_a_mistake_is_reported_once_with_its_field_and_nothing_is_created(monitors: Monitors) -> None:
    monitors.create(monitor(persistent=True))
    monitors.world.run(65.0)
    status, reason, message = monitors.condition()
    assert ("False", "InvalidSpec") == (status, reason)
    assert "spec.storage" in message
    assert 1 == len(monitors.world.events("FailedValidation"))
    assert not monitors.world.exists(STATEFUL_SETS, "basic-monitor")


def elsewhere(world: OperatorWorld) -> None:
    """A cluster in its own namespace."""
    world.admin.create(NAMESPACES, {"metadata": {"name": "tidb-cluster"}})
    body = other("advanced")
    world.admin.create(TIDB_CLUSTERS, body | {"spec": body["spec"] | {"paused": True}}, "tidb-cluster")


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.4")
def test_a_monitor_that_may_not_see_the_pods_of_a_cluster_is_not_ready_and_says_why(monitors: Monitors) -> None:
    elsewhere(monitors.world)
    monitors.create(monitor(clusters=[{"name": "basic"}, {"name": "advanced", "namespace": "tidb-cluster"}]))
    monitors.world.run(60.0)
    _, reason, message = monitors.condition()
    assert ("PodsNotVisible", False) == (reason, monitors.is_ready())
    assert "scrapes nothing of tidb-cluster/advanced; set spec.clusterScoped to true, or bind a Role" in message

    monitors.change(clusterScoped=True)
    monitors.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.4")
def test_a_binding_of_the_users_lets_prometheus_see_pods_elsewhere(monitors: Monitors) -> None:
    elsewhere(monitors.world)
    monitors.create(monitor(clusters=[{"name": "advanced", "namespace": "tidb-cluster"}]))
    monitors.world.run(60.0)
    assert "PodsNotVisible" == monitors.condition()[1]
    binding = {
        "metadata": {"name": "sees-pods"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "basic-monitor", "namespace": NAMESPACE}],
    }
    monitors.world.admin.create(ROLE_BINDINGS, binding, "tidb-cluster")
    monitors.run_until_ready()
