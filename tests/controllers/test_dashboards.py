"""TidbDashboard and TidbNGMonitoring are created and followed, and wait for missing dependencies (other-resources.md 4,
5)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis.flag_settings import OF_NG_MONITORING
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from member import ng_monitoring
from member.labels import LAST_APPLIED, START_SCRIPT_OPTIONS
from sandbox.kubelet.nodes import NodeSpec
from tests.controllers.simple_faults import faulty_runs
from tests.controllers.simple_world import NAMESPACE, SimpleWorld
from tests.operator_world import SAMPLES

SPECS: dict[Resource, Json] = {
    TIDB_DASHBOARDS: {"clusters": [{"name": "basic"}], "version": "v8.5.2", "requests": {"storage": "1Gi"}},
    TIDB_NG_MONITORINGS: {
        "clusters": [{"name": "basic"}],
        "ngMonitoring": {"version": "v8.5.2", "requests": {"storage": "1Gi"}},
    },
}
WORKLOADS = {TIDB_DASHBOARDS: "demo-tidb-dashboard", TIDB_NG_MONITORINGS: "demo-ng-monitoring"}
SERVICE = {TIDB_DASHBOARDS: "demo-tidb-dashboard-exposed", TIDB_NG_MONITORINGS: "demo-ng-monitoring"}
TLS: Json = {"tlsCluster": {"enabled": True}}
FILES = {"ca_crt": "CA", "tls_crt": "CERT", "tls_key": "KEY"}


class Workloads(SimpleWorld):
    """A world for one of the two kinds."""

    def demo(self, **spec: Any) -> None:
        """Create one."""
        self.add(**SPECS[self.resource] | spec)

    @property
    def workload(self) -> Json:
        """Its StatefulSet."""
        return self.get(STATEFUL_SETS, WORKLOADS[self.resource])

    @property
    def told(self) -> Json:
        """What the status says of the StatefulSet."""
        status = self.status()
        found: Json = status if self.resource == TIDB_DASHBOARDS else status.get("ngMonitoring") or {}
        return found

    def made(self) -> list[str]:
        """The existing objects that it owns."""
        found = (each for kind in (SECRETS, SERVICES, CONFIG_MAPS, STATEFUL_SETS) for each in self.names(kind))
        return [each for each in found if each.startswith("demo")]


@pytest.fixture(params=[TIDB_DASHBOARDS, TIDB_NG_MONITORINGS], ids=lambda kind: kind.kind)
def resource(request: pytest.FixtureRequest) -> Resource:
    found: Resource = request.param
    return found


@pytest.fixture
def world(resource: Resource) -> Iterator[Workloads]:
    made = Workloads(resource, nodes=[NodeSpec("n", "10.0.0.1", "a")])
    try:
        yield made
    finally:
        made.stop()


def test_it_is_created_and_ready(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    assert ("True", "Ready") == world.condition("Ready")[:2]
    assert ("Normal", True, 1) == (
        world.told["phase"],
        world.told["synced"],
        world.told["statefulSet"]["readyReplicas"],
    )
    assert 1 == len(world.names(PODS))
    assert SERVICE[world.resource] in world.names(SERVICES)
    reasons = [reason for reason, _ in world.events()]
    assert {"SuccessfulCreate", "SuccessfulPatch"} == {*reasons}


def test_the_sample_is_ready(world: Workloads) -> None:
    world.add_cluster()
    documents = yaml.safe_load_all((SAMPLES / "dashboard.yaml").read_text(encoding="utf-8"))
    (sample,) = [each for each in documents if each["kind"] == world.resource.kind]
    world.add(sample["metadata"]["name"], **sample["spec"])
    world.run(60)
    assert "True" == world.condition("Ready", name="basic")[0]


def test_nothing_is_created_before_its_cluster_and_everything_with_it(world: Workloads) -> None:
    world.demo()
    assert [] == world.made()
    message = "waiting for TidbCluster lab/basic, which does not exist; create it, or correct spec.clusters[0]"
    assert ("True", "NoSuchCluster", message) == world.condition()
    world.add_cluster(pd=None)
    world.run()
    assert ([], "NoPD") == (world.made(), world.condition()[1])
    world.admin.patch(
        TIDB_CLUSTERS, "basic", NAMESPACE, {"spec": {"pd": {"replicas": 1, "requests": {"storage": "1Gi"}}}}
    )
    world.run(60)
    assert "True" == world.condition("Ready")[0]


def test_deleting_the_cluster_deletes_none_of_its_objects(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    before = world.made()
    world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    world.run(60)
    assert (before, "NoSuchCluster") == (world.made(), world.condition()[1])
    assert ("Normal", True) == (world.told["phase"], world.told["synced"])


def test_with_tls_certificates_are_copied_and_follow(world: Workloads) -> None:
    world.add_cluster(**TLS)
    world.demo()
    assert "MissingSecret" == world.condition()[1]
    assert "basic-cluster-client-secret does not exist" in world.condition()[2]
    world.add_secret("basic-cluster-client-secret", **FILES)
    world.run(60)
    assert "True" == world.condition("Ready")[0]
    (copy,) = [each for each in world.names(SECRETS) if each.startswith("demo")]
    assert 3 == len(world.get(SECRETS, copy)["data"])
    body = {"data": {"tls.crt": "TkVX"}}
    world.admin.patch(SECRETS, "basic-cluster-client-secret", NAMESPACE, body)
    world.run(40)
    assert "TkVX" in world.get(SECRETS, copy)["data"].values()
    world.admin.delete(SECRETS, copy, NAMESPACE)
    world.run(5)
    assert copy in world.names(SECRETS)


def test_volumes_get_the_policy_of_the_spec(world: Workloads) -> None:
    world.add_cluster()
    world.demo(pvReclaimPolicy="Delete")
    world.run(60)

    def policies() -> set[str]:
        found = world.admin.list_page(PERSISTENT_VOLUMES).items
        return {each.decode()["spec"]["persistentVolumeReclaimPolicy"] for each in found}

    assert {"Delete"} == policies()
    world.change(pvReclaimPolicy="Retain")
    world.run(5)
    assert {"Retain"} == policies()


def test_another_version_restarts_the_pod_and_the_phase_shows_it(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    version = {"version": "v8.5.3"}
    spec = version if world.resource == TIDB_DASHBOARDS else {"ngMonitoring": version}
    world.admin.patch(world.resource, "demo", NAMESPACE, {"spec": spec})
    seen = set()
    for _ in range(100):
        world.run(0.05)
        seen.add((world.told["phase"], world.condition()[1]))
    assert ("Upgrade", "Restarting") in seen
    assert ("Normal", "True") == (world.told["phase"], world.condition("Ready")[0])
    (pod,) = world.admin.list_page(PODS, NAMESPACE).items
    assert pod.decode()["spec"]["containers"][0]["image"].endswith(":v8.5.3")


def test_fields_that_cannot_change_are_reported_and_left(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    larger: Json = {"requests": {"storage": "2Gi"}}
    more: Json = {"storageVolumes": [{"name": "more", "storageSize": "1Gi", "mountPath": "/more"}]}
    nested = world.resource == TIDB_NG_MONITORINGS
    world.change(**{"ngMonitoring": larger} if nested else larger)
    status, reason, message = world.condition()
    assert ("False", "VolumesKept") == (status, reason)
    assert "2Gi" in message
    assert "True" == world.condition("Ready")[0]
    world.change(**{"ngMonitoring": more} if nested else more)
    assert ("False", "VolumesFixed") == world.condition()[:2]
    assert 1 == len(world.workload["spec"]["volumeClaimTemplates"])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"clusters": []}, "spec.clusters"),
        ({"clusters": [{"name": "a"}, {"name": "b"}]}, "spec.clusters"),
        ({"clusters": [{"name": ""}]}, "spec.clusters[0].name"),
        ({"pvReclaimPolicy": "Keep"}, "spec.pvReclaimPolicy"),
        ({"requests": {}, "ngMonitoring": {}}, "requests.storage"),
        ({"requests": {"storage": "0"}, "ngMonitoring": {"requests": {"storage": "0"}}}, "requests.storage"),
        ({"labels": {"a b": "c"}}, "spec.labels"),
        ({"env": [{"value": "b"}]}, "spec.env[0].name"),
        ({"additionalContainers": [{"image": "busybox:1"}]}, "spec.additionalContainers[0].name"),
        ({"additionalVolumes": [{"name": "a"}, {"name": "a"}]}, "spec.additionalVolumes[1].name"),
    ],
)
def test_problems_of_the_spec_are_reported_by_field(world: Workloads, spec: Json, field: str) -> None:
    world.add_cluster()
    world.demo(
        **{key: value for key, value in spec.items() if key != "ngMonitoring" or world.resource == TIDB_NG_MONITORINGS}
    )
    _, reason, message = world.condition()
    assert ("InvalidSpec", []) == (reason, world.made())
    assert field in message
    assert ("False", "InvalidSpec", message) == world.condition("Ready")
    assert 1 == len([each for each in world.events() if each[0] == "FailedValidation"])


def test_an_object_whose_spec_became_invalid_is_still_observed(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    before = world.made()
    world.change(pvReclaimPolicy="Keep")
    _, reason, message = world.condition("Ready")
    assert ("InvalidSpec", True) == (reason, "spec.pvReclaimPolicy" in message)
    world.admin.delete(STATEFUL_SETS, WORKLOADS[world.resource], NAMESPACE, propagation="Background")
    world.run(20)
    assert (False, None) == (world.told.get("synced", False), world.told.get("statefulSet"))
    world.change(pvReclaimPolicy="Retain")
    world.run(60)
    assert (before, "True") == (world.made(), world.condition("Ready")[0])


@pytest.mark.parametrize("of_1_35", [False, True], ids=["", "Kubernetes 1.35"])
@pytest.mark.parametrize("in_a_roll", [False, True], ids=["at first", "in a roll"])
def test_names_why_its_pod_is_not_ready_until_it_is(world: Workloads, in_a_roll: bool, of_1_35: bool) -> None:
    def use(version: str) -> Json:
        return {"version": version} if world.resource == TIDB_DASHBOARDS else {"ngMonitoring": {"version": version}}

    if of_1_35:
        world.world.faults.one_unavailable_at_most()
    world.add_cluster()
    if in_a_roll:
        world.demo()
        world.run(60)
        world.change(**use("v0.0.0"))
    else:
        own = {"ngMonitoring": {"version": "v0.0.0", "requests": {"storage": "1Gi"}}}
        world.demo(**own if world.resource == TIDB_NG_MONITORINGS else use("v0.0.0"))
    world.run(60)
    assert "ImagePullBackOff" in world.condition("Ready")[2]
    world.change(**use("v8.5.2"))
    world.run(60)
    assert "True" == world.condition("Ready")[0]


def test_names_what_refuses_its_pod_until_it_is_gone(world: Workloads) -> None:
    world.add_cluster()
    heal = world.world.faults.creation_refused("pods")
    world.demo()
    world.run(60)
    assert "exceeded quota: sandbox" in world.condition("Ready")[2]
    heal()
    world.run(400)
    assert "True" == world.condition("Ready")[0]


def test_foreign_edits_are_undone_and_deleted_objects_recreated(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    service, name = SERVICE[world.resource], WORKLOADS[world.resource]
    world.admin.patch(SERVICES, service, NAMESPACE, {"spec": {"selector": {"strange": "yes"}}})
    world.admin.patch(STATEFUL_SETS, name, NAMESPACE, {"spec": {"replicas": 0}})
    world.run(30)
    assert "strange" not in world.get(SERVICES, service)["spec"]["selector"]
    assert 1 == world.workload["spec"]["replicas"]
    world.admin.delete(SERVICES, service, NAMESPACE)
    world.admin.delete(STATEFUL_SETS, name, NAMESPACE, propagation="Background")
    world.run(60)
    assert "True" == world.condition("Ready")[0]


def test_its_deletion_removes_everything_but_its_volumes(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    world.admin.delete(world.resource, "demo", NAMESPACE)
    world.run(60)
    assert ([], []) == (world.made(), world.names(PODS))
    assert 1 == len(world.names(PERSISTENT_VOLUME_CLAIMS))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_idle_is_free_certificates_aside(world: Workloads, tls: bool) -> None:
    world.add_cluster(**TLS if tls else {})
    world.add_secret("basic-cluster-client-secret", **FILES)
    world.demo()
    world.run(90)
    world.forget()
    world.resyncs()
    own = {each for each in world.requests() if not each.endswith("-cluster-secret")}  # those are the TidbCluster's
    assert ({"get secrets basic-cluster-client-secret"} if tls else set()) == own


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False], ids=["the process ends", "the answer is lost"])
@pytest.mark.rule("F1")
def test_the_result_is_the_same_after_a_crash_at_any_write(resource: Resource, ends: bool) -> None:
    def make() -> Workloads:
        made = Workloads(resource, nodes=[NodeSpec("n", "10.0.0.1", "a")])
        made.add_cluster()
        return made

    def play(world: SimpleWorld) -> None:
        world.add(**SPECS[resource])

    def comparable(state: Json) -> Json:
        return {key: value for key, value in state.items() if not key.startswith(("Service", "Persistent", "status"))}

    first, *others = list(faulty_runs(make, play, ends=ends))
    assert 4 <= len(others)
    assert [comparable(first)] * len(others) == [comparable(each) for each in others]


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_a_process_with_an_old_view_makes_nothing_twice(world: Workloads) -> None:
    world.add_cluster()
    before = world.world.server.storage.version
    world.demo()
    world.run(60)
    uid, last = world.workload["metadata"]["uid"], world.world.server.storage.version
    for version in range(before, last, 5):
        world.restart(at=version)
        world.run(3)
    assert (uid, "True") == (world.workload["metadata"]["uid"], world.condition("Ready")[0])


def test_every_sub_object_may_be_empty(world: Workloads) -> None:
    world.add_cluster()
    fields = ("affinity", "podSecurityContext", "dnsConfig", "nodeSelector", "annotations", "labels")
    maps: Json = {key: {} for key in fields}
    lists: Json = {key: [] for key in ("tolerations", "env", "envFrom", "additionalVolumes", "initContainers")}
    service: Json = {"service": {}} if world.resource == TIDB_DASHBOARDS else {}
    world.demo(**maps, **lists, **service)
    world.run(60)
    assert "True" == world.condition("Ready")[0]


@pytest.mark.parametrize("resource", [TIDB_NG_MONITORINGS], indirect=True)
@pytest.mark.rule("other-resources-5")
def test_another_configuration_creates_another_config_map_and_pausing_keeps_it(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    (first,) = [each for each in world.names(CONFIG_MAPS) if each.startswith("demo")]
    world.change(paused=True, ngMonitoring={"config": "[continuous_profiling]\nenable = true\n"})
    assert ("False", "Paused") == world.condition()[:2]
    assert "Normal" == world.told["phase"]
    world.change(paused=False)
    world.run(60)
    volumes = world.workload["spec"]["template"]["spec"]["volumes"]
    name = volumes[0]["configMap"]["name"]
    assert name != first
    assert "enable = true" in world.get(CONFIG_MAPS, name)["data"]["config-file"]


@pytest.mark.parametrize("resource", [TIDB_NG_MONITORINGS], indirect=True)
@pytest.mark.rule("other-resources-5")
def test_the_start_script_runs_the_server(world: Workloads) -> None:
    world.add_cluster()
    world.demo(
        clusterDomain="k8s.local", ngMonitoring=SPECS[TIDB_NG_MONITORINGS]["ngMonitoring"] | {"retentionPeriod": "3d"}
    )
    world.run(60)
    (running,) = world.world.data_plane.running(NAMESPACE, "demo-ng-monitoring-0")
    expected = (
        "/ng-monitoring-server --pd.endpoints basic-pd.lab:2379 "
        "--advertise-address demo-ng-monitoring-0.demo-ng-monitoring.lab.svc.k8s.local:12020 "
        "--config /etc/ng-monitoring/ng-monitoring.toml --storage.path /var/lib/ng-monitoring --retention-period 3d"
    )
    assert expected == " ".join(running.launch.command)


@pytest.mark.parametrize("resource", [TIDB_NG_MONITORINGS], indirect=True)
@pytest.mark.rule("other-resources-5")
def test_the_start_script_of_v1_6_stays_until_its_inputs_change(world: Workloads) -> None:
    world.add_cluster()
    world.demo()
    world.run(60)
    body, script = world.workload, "exec /ng-monitoring-server --pd.endpoints basic-pd.lab:2379"
    annotations: Json = body["metadata"]["annotations"]
    record = json.loads(annotations[LAST_APPLIED])
    for spec in (record, body["spec"]):
        spec["template"]["spec"]["containers"][0]["command"][2] = script
    annotations[LAST_APPLIED] = json.dumps(record)
    del annotations[START_SCRIPT_OPTIONS]
    world.admin.replace(STATEFUL_SETS, body["metadata"]["name"], NAMESPACE, body)

    def launched() -> str:
        world.run(60)
        (running,) = world.world.data_plane.running(NAMESPACE, "demo-ng-monitoring-0")
        return " ".join(running.launch.command)

    assert script == f"exec {launched()}"
    world.admin.patch(world.resource, "demo", NAMESPACE, {"spec": {"ngMonitoring": {"retentionPeriod": "3d"}}})
    assert launched().endswith("--retention-period 3d")


@pytest.mark.parametrize("resource", [TIDB_NG_MONITORINGS], indirect=True)
@pytest.mark.rule("other-resources-5")
def test_a_setting_of_the_server_overrides_the_setting_above_it(world: Workloads) -> None:
    world.add_cluster()
    upper: Json = {
        "version": "v8.5.2",
        "labels": {"a": "upper", "b": "upper"},
        "tolerations": [{"key": "upper"}],
        "podSecurityContext": {"runAsUser": 1, "fsGroup": 1},
    }
    own: Json = {
        "requests": {"storage": "1Gi", "cpu": "100m"},
        "labels": {"b": "own"},
        "podSecurityContext": {"runAsUser": 2},
        "hostNetwork": False,
    }
    world.demo(**upper | {"ngMonitoring": own, "hostNetwork": True})
    template = world.workload["spec"]["template"]
    assert {"a": "upper", "b": "own"}.items() <= template["metadata"]["labels"].items()
    spec = template["spec"]
    assert ([{"key": "upper"}], {"runAsUser": 2}) == (spec["tolerations"], spec["securityContext"])
    assert "hostNetwork" not in spec
    assert ("pingcap/ng-monitoring:v8.5.2", {"cpu": "100m"}) == (
        spec["containers"][0]["image"],
        spec["containers"][0]["resources"]["requests"],
    )


@pytest.mark.parametrize("resource", [TIDB_NG_MONITORINGS], indirect=True)
def test_settings_that_the_start_script_overrides_are_named_until_they_go(world: Workloads) -> None:
    world.add_cluster()
    own = SPECS[TIDB_NG_MONITORINGS]["ngMonitoring"]
    config = {
        "log": {"level": "WARN"},
        "pd": {"endpoints": ["a:1"]},
        "storage": {"path": "/x"},
        "tsdb": {"retention-period": "1d"},
    }
    world.demo(ngMonitoring=own | {"config": config, "retentionPeriod": "3d"})
    world.run(60)
    status, reason, message = world.condition("SettingsOverridden")
    assert ("True", "SettingsOverridden") == (status, reason)
    assert [
        'spec.ngMonitoring.config.pd.endpoints: ["a:1"]: has no effect, because the start script passes --pd.endpoints',
        'spec.ngMonitoring.config.storage.path: "/x": has no effect, because the start script passes --storage.path',
        'spec.ngMonitoring.config.tsdb.retention-period: "1d": has no effect, because the start script passes '
        "--retention-period",
    ] == [each for each in message.split("; ") if each.startswith("spec.ngMonitoring.config")]


def test_every_flag_of_ng_monitoring_is_in_the_table_of_overrides() -> None:
    script = (Path(ng_monitoring.__file__).parent / "start.sh").read_text(encoding="utf-8")
    assert set(OF_NG_MONITORING) == set(re.findall(r"--([\w.-]+) ", script))
