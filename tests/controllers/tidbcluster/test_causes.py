"""The message of Ready, which `kubectl get tc` shows, names the known causes of a wait."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from kube.objects import Json
from kube.resources import EVENTS, PODS, SECRETS, STATEFUL_SETS
from member.context import Settings
from ports.clock import FakeClock
from rehearsal.operator import CLUSTER_SCOPED
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

VOLUME = {
    "additionalVolumes": [{"name": "extra", "secret": {"secretName": "nope"}}],
    "additionalVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
}
FROM_SECRET = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "nope", "key": "a"}}}
INIT = {"name": "prepare", "image": "pingcap/nope:v1", "command": ["true"]}
FAILING_INIT = {"name": "prepare", "image": "busybox:1.36", "command": ["/bin/sh", "-c", "exit 4"]}
BROKEN = {"name": "beside", "image": "busybox:1.36", "command": ["/bin/sh", "-c", "exit 3"]}

SPECS: dict[str, tuple[Json, str]] = {
    "a volume of a Secret": (
        {"tikv": VOLUME},
        'waiting for basic-tikv-0 (FailedMount: MountVolume.SetUp failed for volume "extra" : secret "nope"',
    ),
    "a variable of a Secret": (
        {"tidb": {"env": [FROM_SECRET]}},
        'waiting for basic-tidb-0 (container tidb: CreateContainerConfigError: secret "nope" not found)',
    ),
    "certificates": ({"tlsCluster": {"enabled": True}}, "Secret default/basic-pd-cluster-secret does not exist"),
    "an image": (
        {"tikv": {"version": "v8.5.99-nope"}},
        "waiting for basic-tikv-0 (container tikv: ImagePullBackOff: pingcap/tikv:v8.5.99-nope)",
    ),
    "an image of an init container": (
        {"tikv": {"initContainers": [INIT]}},
        "waiting for basic-tikv-0 (container prepare: ImagePullBackOff: pingcap/nope:v1)",
    ),
    "an init container that fails": (
        {"tikv": {"initContainers": [FAILING_INIT]}},
        "waiting for basic-tikv-0 (container prepare: CrashLoopBackOff: Error, exit code 4)",
    ),
    "an account": (
        {"tikv": {"serviceAccount": "nope"}},
        'is forbidden: error looking up service account default/nope: serviceaccount "nope" not found)',
    ),
    "a program that ends": (
        {"tikv": {"additionalContainers": [BROKEN]}},
        "waiting for basic-tikv-0 (container beside: CrashLoopBackOff: Error, exit code 3)",
    ),
    "a node": (
        {"tikv": {"requests": {"cpu": "400", "storage": "1Gi"}}},
        "waiting for basic-tikv-0 (Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.)",
    ),
    "a storage class": (
        {"tikv": {"storageClassName": "nope"}},
        'PersistentVolumeClaims; ProvisioningFailed: storageclass.storage.k8s.io "nope" not found)',
    ),
    "a cluster to join": (
        {"cluster": {"name": "other"}},
        "spec.cluster names TidbCluster default/other, which does not exist",
    ),
    "a cluster to use": (
        {"cluster": {"name": "other"}, "pd": None},
        "spec.cluster names TidbCluster default/other, which does not exist",
    ),
    "consent": (
        {"cluster": {"name": "other", "namespace": "elsewhere"}, "pd": None},
        "tikv: TidbCluster elsewhere/other does not exist, or does not allow references from namespace default",
    ),
    "a PD": ({"pd": None}, "the cluster has no PD: add spec.pd, or name a cluster that has one in spec.cluster"),
}


@pytest.fixture
def world(clock: FakeClock) -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=clock)
    yield world
    world.stop()


def cluster(changes: Json) -> Json:
    """`basic` with changes of its spec; None removes a component."""
    body = sample("basic")
    for field, value in changes.items():
        if value is None:
            del body["spec"][field]
        else:
            body["spec"][field] = body["spec"].get(field, {}) | value
    return body


def said(world: OperatorWorld, seconds: float = 45.0) -> str:
    """The message of Ready after a while."""
    world.run(seconds)
    ready = world.condition("Ready")
    assert "False" == ready["status"]
    return str(ready["message"])


@pytest.mark.parametrize(("changes", "cause"), SPECS.values(), ids=SPECS.keys())
def test_names_missing_objects(world: OperatorWorld, changes: Json, cause: str) -> None:
    world.apply(cluster(changes))
    assert cause in said(world)


@pytest.mark.parametrize(("resource", "name"), [("pods", "basic-pd-0"), ("persistentvolumeclaims", "pd-basic-pd-0")])
def test_names_a_quota(world: OperatorWorld, resource: str, name: str) -> None:
    world.world.faults.creation_refused(resource)
    world.apply(cluster({}))
    message = said(world)
    assert "waiting for basic-pd-0 (FailedCreate: Create Pod basic-pd-0 in StatefulSet basic-pd failed" in message
    assert f'{resource} "{name}" is forbidden: exceeded quota: sandbox' in message


@pytest.mark.parametrize("resource", ["services", "configmaps", "statefulsets.apps", "deployments.apps"])
def test_names_the_policy_that_refuses_an_object(world: OperatorWorld, resource: str) -> None:
    world.world.faults.creation_refused(resource)
    world.apply(cluster({}))
    assert "is forbidden: exceeded quota: sandbox" in said(world)


def test_names_the_image_of_discovery(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock, settings=Settings("pingcap/nope:v1"), permitted=CLUSTER_SCOPED)
    world.apply(cluster({}))
    what = "Discovery, which it asks at its first start, does not run: container discovery: ImagePullBackOff"
    assert f"pd: PD does not answer yet: {what}: pingcap/nope:v1" in said(world)
    world.stop()


def test_names_the_policy_that_refuses_the_discovery_pod_until_it_is_gone(world: OperatorWorld) -> None:
    allow = world.world.faults.creation_refused("pods", "*-discovery-*")
    world.apply(cluster({}))
    message = said(world)
    assert "Discovery, which it asks at its first start, does not run: " in message
    assert "exceeded quota: sandbox" in message
    allow()
    world.run_until_ready(within=120.0)


def test_names_a_lost_node(world: OperatorWorld) -> None:
    world.apply(cluster({}))
    world.run_until_ready()
    node = world.get(PODS, "basic-tikv-0")["spec"]["nodeName"]
    world.world.faults.node_gone(node)
    assert f"tikv: 0 of 1 pods are Ready; waiting for basic-tikv-0 (node {node} is not Ready)" in said(world, 120.0)


@pytest.mark.rule("R28")
def test_a_roll_that_waits_for_a_pod_on_a_lost_node_names_both(world: OperatorWorld) -> None:
    world.apply(cluster({}))
    world.run_until_ready()
    node = world.get(PODS, "basic-tikv-0")["spec"]["nodeName"]
    world.world.faults.node_gone(node)
    world.run(60.0)
    world.change(tikv={"annotations": {"roll": "1"}})
    world.run(30.0)
    expected = f"tikv: waiting until pod basic-tikv-0 is Ready; basic-tikv-0: node {node} is not Ready"
    assert expected in world.condition("Progressing")["message"]
    assert "deletionTimestamp" not in world.get(PODS, "basic-tikv-0")["metadata"]


def test_names_the_pod_of_an_older_stateful_set_that_blocks_new_ones(world: OperatorWorld) -> None:
    """More than half of five PDs are away, but none of them is lost."""
    world.apply(cluster({"pd": {"replicas": 5}}))
    world.run_until_ready()
    node = world.get(PODS, "basic-pd-1")["spec"]["nodeName"]
    world.world.faults.host_gone(f"{NAMESPACE}/basic-pd-1")
    world.run(60.0)
    world.admin.delete(STATEFUL_SETS, "basic-pd", NAMESPACE)
    world.run(400.0)
    said = world.condition("Progressing")
    assert "NodeLost" == said["reason"]
    expected = f"pd: basic-pd-3 can't be created before these pods have ended: pod basic-pd-1 on node {node}, "
    assert expected in said["message"]
    assert "which is not Ready; if the machine is gone for good, delete its Node object" in said["message"]


def test_names_a_cause_during_a_roll_until_it_is_gone(world: OperatorWorld) -> None:
    world.apply(cluster({}))
    world.run_until_ready()
    world.change(tikv=VOLUME)
    message = said(world)
    assert "waiting until pod basic-tikv-0 is Ready; basic-tikv-0: FailedMount: MountVolume.SetUp failed" in message
    world.admin.create(SECRETS, {"metadata": {"name": "nope"}, "data": {}}, NAMESPACE)
    world.run_until_ready(within=180.0)


def test_the_wait_ends_for_a_new_cluster(world: OperatorWorld) -> None:
    body = cluster({"cluster": {"name": "other"}, "pd": None})
    world.apply(body)
    assert "spec.cluster names TidbCluster default/other, which does not exist" in said(world)
    other = cluster({"tikv": None, "tidb": None})
    other["metadata"]["name"] = "other"
    world.apply(other)
    world.run_until(world.is_ready, within=120.0)


def test_reads_events_only_of_pods_that_do_not_start(world: OperatorWorld) -> None:
    world.apply(cluster({}))
    world.run_until_ready()
    assert [] == _reads_of_events(world)
    world.change(tikv=VOLUME)
    world.run(120.0)
    # after ten seconds, and then every thirty
    assert 3 <= len(_reads_of_events(world)) <= 5


def _reads_of_events(world: OperatorWorld) -> list[str]:
    return [read for read in world.reads() if read.split()[1] == EVENTS.plural]


@pytest.mark.parametrize(
    ("component", "replicas", "what", "request_to_pd"),
    [
        ("pd", 3, "member", {"path": "members/name/basic-pd-1"}),
        ("tikv", 4, "store", {"path": "store/{store}", "pod": "basic-tikv-1"}),
    ],
)
def test_names_a_member_that_a_client_removed_from_pd_and_the_way_out(
    world: OperatorWorld, component: str, replicas: int, what: str, request_to_pd: Json
) -> None:
    body = sample("basic")
    body["spec"][component]["replicas"] = replicas
    world.apply(body)
    world.run_until_ready()
    world.run(5.0)
    pod, key = f"basic-{component}-1", "tidb.pingcap.com/replace-volume"
    removed = world.get(PODS, pod)["metadata"]["labels"][f"tidb.pingcap.com/{what}-id"]
    world.world.faults.pd_ctl(f"{NAMESPACE}/basic", "DELETE", **request_to_pd)
    world.run_until(lambda: f"{what} {removed} was removed from PD" in world.progressing, 120.0)
    assert all(each["status"]["conditions"][0]["status"] == "True" for each in world.every(PODS)), "all are Ready"
    assert f"kubectl annotate pod {pod} {key}=true" in world.condition("Progressing")["message"]

    world.admin.patch(PODS, pod, NAMESPACE, {"metadata": {"annotations": {key: "true"}}})
    world.run_until(lambda: world.is_ready() and "Done" == world.reason(), 240.0)
    assert replicas == len(world.cluster()["status"][component][f"{what}s"])


def test_a_removed_hanging_member_does_not_block_requests_to_pd(world: OperatorWorld) -> None:
    body = sample("basic")
    body["spec"]["pd"]["replicas"] = 3
    world.apply(body)
    world.run_until_ready()
    world.run(5.0)
    world.world.faults.pd_ctl(f"{NAMESPACE}/basic", "DELETE", "members/name/basic-pd-1")
    world.run_until(lambda: "was removed from PD" in world.progressing, 120.0)
    world.world.faults.pod_crash(f"{NAMESPACE}/basic-pd-1")  # it starts again on its data, and its pod becomes Ready
    world.run(30.0)
    world.forget()
    world.run(300.0)

    # a third of the requests to the Service reach it
    through_service = [each.url for each in world.operator.dataplane.requests if "//basic-pd.default:" in each.url]
    asked = {"/pd/api/v1/members", "/pd/api/v1/health", "/pd/api/v1/stores"}  # which are sent together
    assert asked >= {urlsplit(url).path for url in through_service}
    assert "was removed from PD" in world.progressing
