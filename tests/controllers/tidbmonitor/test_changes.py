"""Changes and deletion of a monitor (other-resources.md 3.2, 3.3, 3.4, 3.9)."""

import pytest

from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESSES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_MONITORS,
)
from tests.controllers.tidbmonitor.monitors import CONTAINERS, Monitors, monitor
from tests.operator_world import NAMESPACE


def exists_cluster_scoped(monitors: Monitors) -> bool:
    found = [
        monitors.world.admin.find(each, "default-basic-monitor") for each in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    ]
    assert (found[0] is None) == (found[1] is None)
    return found[0] is not None


def template(monitors: Monitors, name: str = "basic-monitor") -> Json:
    found: Json = monitors.world.get(STATEFUL_SETS, name)["spec"]["template"]
    return found


def _merged(wrong: Json) -> Json:
    return {key: CONTAINERS.get(key, {}) | part for key, part in wrong.items()}


@pytest.mark.rule("other-resources-3.3")
def test_shards_come_and_go_and_claims_stay(monitors: Monitors) -> None:
    world = monitors.world
    monitors.create(monitor(shards=2, persistent=True, storage="1Gi"))
    monitors.run_until_ready()
    env = {
        each["name"]: each.get("value")
        for each in template(monitors, "basic-monitor-shard-1")["spec"]["containers"][0]["env"]
    }
    assert "1" == env["SHARD"]
    monitors.change(shards=1)
    world.run(10.0)
    for resource, name in (
        (STATEFUL_SETS, "basic-monitor"),
        (SERVICES, "basic-prometheus"),
        (SERVICES, "basic-monitor"),
    ):
        assert world.exists(resource, name)
        assert not world.exists(resource, f"{name}-shard-1")
    assert world.exists(PERSISTENT_VOLUME_CLAIMS, "tidbmonitor-basic-monitor-shard-1-0")


@pytest.mark.parametrize("wrong", [{"prometheus": {"version": "typo"}}, {"nodeSelector": {"no": "such"}}])
@pytest.mark.parametrize("at_first", [True, False])
@pytest.mark.rule("R23")
def test_a_pod_that_a_mistake_broke_restarts_once_after_the_correction(
    monitors: Monitors, wrong: Json, at_first: bool
) -> None:
    """Kubernetes waits forever for it to be Ready, since it starts pods in order."""
    world = monitors.world
    world.world.faults.image_missing("*:typo")
    spec: Json = {"replicas": 2, "persistent": True, "storage": "1Gi"}
    monitors.create(monitor(**spec | (_merged(wrong) if at_first else {})))
    if not at_first:
        monitors.run_until_ready()
        monitors.change(**wrong)
    world.run(30.0)
    assert not monitors.is_ready()
    before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.every(PODS)}
    monitors.change(**{key: CONTAINERS.get(key) for key in wrong})
    monitors.run_until_ready()
    after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.every(PODS)}
    # the pod with the mistake; pods that were always Ready have served on
    assert {"basic-monitor-0" if at_first else "basic-monitor-1"} == {
        name for name in before if before[name] != after[name] and name.startswith("basic-monitor")
    }


@pytest.mark.rule("other-resources-3.4")
def test_grafana_and_ingresses_go_with_their_spec(monitors: Monitors) -> None:
    world = monitors.world
    ingress = {"hosts": ["g.example.com"], "annotations": {"a": "1"}}
    monitors.create(monitor(grafana=CONTAINERS["grafana"] | {"ingress": ingress}))
    monitors.run_until_ready()
    assert world.exists(INGRESSES, "basic-grafana")
    monitors.change(grafana={"ingress": None})
    world.run(2.0)
    assert not world.exists(INGRESSES, "basic-grafana")
    assert world.exists(SERVICES, "basic-grafana")
    monitors.change(grafana=None)
    world.run(30.0)
    assert not world.exists(SERVICES, "basic-grafana")
    assert not world.exists(CONFIG_MAPS, "basic-monitor-grafana")
    assert not world.exists(SECRETS, "basic-monitor")
    assert ["prometheus", "reloader", "prometheus-config-reloader"] == [
        each["name"] for each in template(monitors)["spec"]["containers"]
    ]


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.4")
def test_foreign_objects_are_not_pruned(beside_basic: Monitors) -> None:
    monitors = beside_basic
    monitors.create(monitor())
    monitors.run_until_ready()
    labels = {"app.kubernetes.io/managed-by": "tidb-operator", "app.kubernetes.io/instance": "basic"}
    theirs = {"metadata": {"name": "theirs", "labels": labels}}
    monitors.world.admin.create(CONFIG_MAPS, theirs, NAMESPACE)
    monitors.change(labels={"a": "b"})
    monitors.world.run(30.0)
    assert monitors.world.exists(CONFIG_MAPS, "theirs")
    assert monitors.world.is_ready()


@pytest.mark.rule("other-resources-3.2")
def test_rights_in_all_namespaces_go_with_the_monitor(monitors: Monitors) -> None:
    world = monitors.world
    monitors.create(monitor(clusterScoped=True))
    monitors.run_until_ready()
    assert exists_cluster_scoped(monitors)
    assert not world.exists(ROLES, "basic-monitor")
    world.admin.delete(TIDB_MONITORS, "basic", NAMESPACE)
    world.run_until(lambda: not world.exists(TIDB_MONITORS, "basic"))
    assert not exists_cluster_scoped(monitors)
    world.run(30.0)
    assert not world.exists(STATEFUL_SETS, "basic-monitor")


@pytest.mark.rule("other-resources-3.2")
def test_cluster_roles_are_deleted_when_the_field_is_unset(monitors: Monitors) -> None:
    monitors.create(monitor(clusterScoped=True))
    monitors.run_until_ready()
    monitors.change(clusterScoped=False)
    monitors.world.run(5.0)
    assert not exists_cluster_scoped(monitors)
    assert monitors.world.exists(ROLES, "basic-monitor")


@pytest.mark.rule("other-resources-3.2")
def test_foreign_cluster_roles_stay(monitors: Monitors) -> None:
    world = monitors.world
    theirs: Json = {"metadata": {"name": "default-basic-monitor"}, "rules": []}
    world.admin.create(CLUSTER_ROLES, theirs)
    monitors.create(monitor(clusterScoped=True))
    world.run(5.0)
    assert "ForeignOwner" == monitors.condition()[1]
    world.admin.delete(TIDB_MONITORS, "basic", NAMESPACE)
    world.run_until(lambda: not world.exists(TIDB_MONITORS, "basic"))
    assert world.admin.find(CLUSTER_ROLES, "default-basic-monitor") is not None


@pytest.mark.parametrize("scoped", [False, True])
@pytest.mark.rule("other-resources-3.2")
def test_the_roles_of_a_monitor_with_an_ambiguous_name_stay(monitors: Monitors, scoped: bool) -> None:
    world = monitors.world
    world.admin.create(NAMESPACES, {"metadata": {"name": "default-a"}})
    clusters = [{"name": "basic", "namespace": NAMESPACE}]
    monitors.create(monitor("b", clusters=clusters, clusterScoped=True), "default-a")
    world.run(30.0)
    before = world.admin.get(CLUSTER_ROLE_BINDINGS, "default-a-b-monitor").decode()
    assert "default-a" == before["subjects"][0]["namespace"]
    monitors.create(monitor("a-b", clusterScoped=scoped))
    world.run(60.0)
    assert ("ForeignOwner" if scoped else "Done") == monitors.condition(name="a-b")[1]
    world.admin.delete(TIDB_MONITORS, "a-b", NAMESPACE)
    world.run(30.0)
    assert before == world.admin.get(CLUSTER_ROLE_BINDINGS, "default-a-b-monitor").decode()


@pytest.mark.rule("other-resources-3.6")
def test_without_a_reloader_another_configuration_restarts_the_pods(monitors: Monitors) -> None:
    monitors.create(monitor(prometheusReloader=None))
    monitors.run_until_ready()
    before = template(monitors)
    monitors.change(externalLabels={"region": "eu"})
    monitors.world.run(2.0)
    assert before != template(monitors)


@pytest.mark.rule("other-resources-3.6")
def test_with_one_it_does_not(monitors: Monitors) -> None:
    monitors.create(monitor())
    monitors.run_until_ready()
    before = template(monitors)
    monitors.change(externalLabels={"region": "eu"})
    monitors.world.run(2.0)
    assert "region: eu" in monitors.world.get(CONFIG_MAPS, "basic-monitor")["data"]["prometheus.yml"]
    assert before == template(monitors)


@pytest.mark.rule("other-resources-1")
def test_volumes_get_the_policy_and_keep_it(monitors: Monitors) -> None:
    world = monitors.world
    monitors.create(monitor(persistent=True, storage="1Gi", shards=2))
    monitors.run_until_ready()
    world.run(5.0)

    def policies() -> set[str]:
        claims = [each for each in world.every(PERSISTENT_VOLUME_CLAIMS) if "monitor" in each["metadata"]["name"]]
        volumes = [world.admin.get(PERSISTENT_VOLUMES, each["spec"]["volumeName"]).decode() for each in claims]
        assert 2 == len(volumes)
        return {each["spec"]["persistentVolumeReclaimPolicy"] for each in volumes}

    assert {"Retain"} == policies()
    monitors.change(pvReclaimPolicy="Delete")
    world.run(5.0)
    assert {"Delete"} == policies()
    world.admin.delete(TIDB_MONITORS, "basic", NAMESPACE)
    world.run(60.0)
    assert world.exists(PERSISTENT_VOLUME_CLAIMS, "tidbmonitor-basic-monitor-0")


@pytest.mark.rule("other-resources-1")
def test_another_size_is_reported_and_added_or_removed_volumes_are_refused(monitors: Monitors) -> None:
    monitors.create(monitor(persistent=True, storage="1Gi"))
    monitors.run_until_ready()
    monitors.change(storage="2Gi")
    monitors.world.run(2.0)
    assert "VolumesKept" == monitors.condition()[1]
    monitors.change(persistent=False, storage="1Gi")
    monitors.world.run(2.0)
    assert "VolumesFixed" == monitors.condition()[1]
    assert "put spec.persistent back" in monitors.condition()[2]


@pytest.mark.rule("other-resources-3.9")
def test_the_volume_of_an_older_deployment_is_taken_over(monitors: Monitors) -> None:
    world = monitors.world
    monitors.create(monitor(clusters=[{"name": "none-yet"}], persistent=True, storage="1Gi"))
    world.run(2.0)
    uid = world.get(TIDB_MONITORS, "basic")["metadata"]["uid"]
    labels = {
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/instance": "basic",
        "app.kubernetes.io/component": "monitor",
    }
    owner = {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbMonitor",
        "name": "basic",
        "uid": uid,
        "controller": True,
    }
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "basic-monitor", "labels": labels}, "spec": spec | {"volumeName": "old"}}
    volume: Json = {
        "metadata": {"name": "old"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "standard",
            "hostPath": {"path": "/old"},
        },
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:v1"}]}}
    deployment: Json = {
        "metadata": {"name": "basic-monitor", "labels": labels, "ownerReferences": [owner]},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }
    world.admin.create(PERSISTENT_VOLUMES, volume)
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE)
    world.admin.create(DEPLOYMENTS, deployment, NAMESPACE)
    world.run(2.0)
    monitors.change(clusters=[{"name": "basic"}])
    monitors.run_until_ready()
    assert not world.exists(DEPLOYMENTS, "basic-monitor")
    assert not world.exists(PERSISTENT_VOLUME_CLAIMS, "basic-monitor")
    assert "old" == world.get(PERSISTENT_VOLUME_CLAIMS, "tidbmonitor-basic-monitor-0")["spec"]["volumeName"]
    assert "deploymentStorageStatus" not in monitors.status()
