"""Foreign objects with our names or labels: the operator names them, leaves them alone, and does not keep requesting
them (F4)."""

import msgspec
import pytest

from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from member.observed import troubles
from sandbox.actor_system import NeverSettles
from simulate.engine.components import managed_components
from simulate.engine.worlds import CLUSTERS
from simulate.families.homes import home_of
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

_TEMPLATE: Json = {
    "metadata": {"labels": {"app": "theirs"}},
    "spec": {"containers": [{"name": "c", "image": "busybox"}]},
}
_WORKLOAD: Json = {"selector": {"matchLabels": {"app": "theirs"}}, "template": _TEMPLATE}
_RBAC = "rbac.authorization.k8s.io"

THEIRS: list[tuple[Resource, str, Json]] = [
    (SERVICES, "basic-pd", {"spec": {"ports": [{"port": 80}]}}),
    (SERVICES, "basic-tikv-peer", {"spec": {"ports": [{"port": 80}]}}),
    (SERVICES, "basic-discovery", {"spec": {"ports": [{"port": 80}]}}),
    (CONFIG_MAPS, "basic-tidb", {}),
    (SERVICE_ACCOUNTS, "basic-discovery", {}),
    (ROLES, "basic-discovery", {"rules": []}),
    (ROLE_BINDINGS, "basic-discovery", {"roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "x"}}),
    (DEPLOYMENTS, "basic-discovery", {"spec": _WORKLOAD}),
    (STATEFUL_SETS, "basic-pd", {"spec": _WORKLOAD | {"serviceName": "x", "replicas": 1}}),
    (STATEFUL_SETS, "basic-tidb", {"spec": _WORKLOAD | {"serviceName": "x", "replicas": 1}}),
]
LABELS = {
    "app.kubernetes.io/name": "tidb-cluster",
    "app.kubernetes.io/managed-by": "tidb-operator",
    "app.kubernetes.io/instance": "basic",
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "rival", "controller": True}


def in_place() -> Json:
    """A cluster whose ConfigMaps have predictable names."""
    cluster = sample("basic")
    cluster["spec"]["configUpdateStrategy"] = "InPlace"
    return cluster


def create(world: OperatorWorld, resource: Resource, name: str, body: Json, *, labelled: bool) -> None:
    """An object with the name, and if requested the label, of an object of the operator, controlled by a ConfigMap."""
    if not world.exists(CONFIG_MAPS, "rival"):
        world.admin.create(CONFIG_MAPS, {"metadata": {"name": "rival"}}, NAMESPACE)
    rival = OWNER | {"uid": world.get(CONFIG_MAPS, "rival")["metadata"]["uid"]}
    meta: Json = {"name": name, "ownerReferences": [rival]} | ({"labels": LABELS} if labelled else {})
    world.admin.create(resource, {"metadata": meta} | body, NAMESPACE)


def creations(world: OperatorWorld, resource: Resource, name: str) -> int:
    """The number of times that the operator has tried to create an object."""
    calls = (entry.call for entry in world.world.server.audit.recent())
    bodies = [
        msgspec.json.decode(call.request.body or b"{}")
        for call in calls
        if (call.user, call.verb, call.resource) == (OPERATOR, "create", str(resource))
    ]
    return sum(body["metadata"]["name"] == name for body in bodies)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize(("resource", "name", "body"), THEIRS, ids=[f"{each[0]}-{each[1]}" for each in THEIRS])
@pytest.mark.rule("F4")
def test_names_a_foreign_object_and_writes_to_it_at_most_once(
    world: OperatorWorld, resource: Resource, name: str, body: Json, labelled: bool
) -> None:
    create(world, resource, name, body, labelled=labelled)
    before = world.get(resource, name)
    world.apply(in_place())
    world.run_until(lambda: world.reason() == "ForeignOwner")
    message = f"{resource} default/{name} exists and is controlled by ConfigMap rival"
    assert message in world.condition("Progressing")["message"]
    world.run(150.0)

    assert (0 if labelled else 1) == creations(world, resource, name)
    after = world.get(resource, name)
    assert (before["metadata"]["uid"], before.get("spec")) == (after["metadata"]["uid"], after.get("spec"))

    world.admin.delete(resource, name, NAMESPACE)
    world.run_until_ready(within=90.0)


@pytest.mark.rule("F4")
def test_a_change_of_a_labelled_foreign_object_ends_the_wait_immediately(world: OperatorWorld) -> None:
    create(world, SERVICES, "basic-pd", THEIRS[0][2], labelled=True)
    world.apply(in_place())
    world.run_until(lambda: world.reason() == "ForeignOwner")
    world.run(100.0)
    world.admin.delete(SERVICES, "basic-pd", NAMESPACE)
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-pd"), 2.0)


@pytest.mark.rule("F4")
def test_writes_nothing_beside_a_foreign_stateful_set(world: OperatorWorld) -> None:
    create(world, STATEFUL_SETS, "basic-pd", THEIRS[-2][2], labelled=False)
    world.apply(in_place())
    world.run(60.0)
    assert [] == [write for write in world.writes() if "basic-pd" in write]


_POD: Json = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic-pd-0", "basic-tikv-0", "basic-tidb-0"])
@pytest.mark.parametrize(
    ("meta", "whose"),
    [
        ({}, "without a controller"),
        ({"labels": {"app.kubernetes.io/managed-by": "argocd"}}, "managed by argocd"),
        ({"labels": {"app.kubernetes.io/name": "theirs"}, "ownerReferences": "rival"}, "controlled by ConfigMap rival"),
    ],
    ids=["bare", "labelled", "controlled"],
)
@pytest.mark.rule("F4")
def test_names_a_foreign_pod_with_our_name_and_leaves_it_alone(
    world: OperatorWorld, name: str, meta: Json, whose: str
) -> None:
    if "ownerReferences" in meta:
        create(world, PODS, name, _POD, labelled=False)
    else:
        world.admin.create(PODS, {"metadata": {"name": name} | meta} | _POD, NAMESPACE)
    before = world.get(PODS, name)["metadata"]["uid"]
    world.apply(sample("basic"))

    world.run_until(lambda: whose in world.condition("Progressing")["message"], 60.0)
    message = world.condition("Progressing")["message"]
    world.run(120.0)

    assert f"{name} (the name belongs to another pod" in message
    assert before == world.get(PODS, name)["metadata"]["uid"]
    world.admin.delete(PODS, name, NAMESPACE)
    world.run_until_ready(within=600.0)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("scales_out", [False, True], ids=["before", "scale-out"])
@pytest.mark.parametrize("component", [each for each in managed_components() if each not in ("pd", "tikv", "tidb")])
@pytest.mark.rule("F4")
def test_names_a_foreign_pod_with_the_name_of_any_component(
    world: OperatorWorld, component: str, scales_out: bool
) -> None:
    home = home_of(component)
    cluster, replicas = CLUSTERS[home.cluster](), home.section["replicas"]
    name = f"basic-{component}-{replicas if scales_out else 0}"
    if scales_out:
        world.apply(cluster)
        world.run_until_ready(within=200.0)
    world.admin.create(PODS, {"metadata": {"name": name}} | _POD, NAMESPACE)
    if scales_out:
        world.change(**home.merge(0.0, {"replicas": replicas + 1}).spec)
    else:
        world.apply(cluster)
    world.run_until(lambda: f"{name} (the name belongs to another pod" in world.condition("Ready")["message"], 90.0)


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.rule("F4")
def test_reports_a_wait_that_does_not_name_a_foreign_pod(world: OperatorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(troubles, "_pod_in_the_way", lambda *_: "")
    with pytest.raises(NeverSettles):
        test_names_a_foreign_pod_with_our_name_and_leaves_it_alone(world, "basic-pd-0", {}, "without a controller")


@pytest.mark.slow
@pytest.mark.rule("F4")
def test_creates_no_pod_over_a_foreign_volume(world: OperatorWorld) -> None:
    body = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    create(world, PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-0", body, labelled=False)
    world.apply(sample("basic"))
    world.run_until(lambda: world.reason() == "ForeignOwner")
    named = "PersistentVolumeClaim pd-basic-pd-0 exists and is controlled by ConfigMap rival"
    assert named in world.condition("Progressing")["message"]
    world.run(60.0)
    assert [] == world.every(STATEFUL_SETS)

    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-0", NAMESPACE)
    world.run_until_ready(within=90.0)


def foreign_pod(world: OperatorWorld, component: str, name: str) -> Json:
    labels = LABELS | {"app.kubernetes.io/component": component}
    rival = OWNER | {"uid": world.get(CONFIG_MAPS, "rival")["metadata"]["uid"]}
    containers = [{"name": "c", "image": "busybox"}]
    meta = {"name": name, "labels": labels, "ownerReferences": [rival]}
    return world.admin.create(PODS, {"metadata": meta, "spec": {"containers": containers}}, NAMESPACE).decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic-tikv-0", "basic-tikv-7", "theirs"])
@pytest.mark.rule("11.4")
def test_ignores_a_pod_with_our_labels_and_a_foreign_controller(world: OperatorWorld, name: str) -> None:
    world.admin.create(CONFIG_MAPS, {"metadata": {"name": "rival"}}, NAMESPACE)
    foreign_pod(world, "tikv", name)
    order: list[str] = []

    def created() -> bool:
        found = {each["metadata"]["name"] for each in world.every(STATEFUL_SETS)}
        order.extend(sorted(found - set(order)))
        return len(order) == 2

    world.apply(sample("basic"))
    world.run_until(created)
    assert ["basic-pd", "basic-tikv"] == order
    world.run(60.0)
    assert not [key for key in world.get(PODS, name)["metadata"]["labels"] if key.startswith("tidb.pingcap.com/")]


@pytest.mark.slow
@pytest.mark.rule("R27")
def test_names_a_ready_foreign_pod_with_our_labels_until_it_is_gone(basic: OperatorWorld) -> None:
    basic.admin.create(CONFIG_MAPS, {"metadata": {"name": "rival"}}, NAMESPACE)
    foreign_pod(basic, "pd", "theirs")
    basic.run_until(lambda: basic.reason() == "PodsOfOthers")
    assert "pod theirs carries the labels" in basic.condition("Progressing")["message"]

    basic.admin.delete(PODS, "theirs", NAMESPACE)
    basic.run_until(lambda: basic.reason() == "Done")


@pytest.mark.rule("11.4")
def test_keeps_its_pod_although_a_client_broke_the_owner_reference(basic: OperatorWorld) -> None:
    owner = basic.get(PODS, "basic-tidb-0")["metadata"]["ownerReferences"][0] | {"apiVersion": "apps.example.com/v1"}
    basic.admin.patch(PODS, "basic-tidb-0", NAMESPACE, {"metadata": {"ownerReferences": [owner]}})
    basic.run(60.0)
    assert ("Done", True) == (basic.reason(), basic.is_ready())


@pytest.mark.slow
@pytest.mark.rule("13")
def test_ignores_a_command_on_a_foreign_pod(basic: OperatorWorld) -> None:
    basic.change(tidb={"replicas": 2})
    basic.run_until_ready()
    basic.admin.create(CONFIG_MAPS, {"metadata": {"name": "rival"}}, NAMESPACE)
    theirs = foreign_pod(basic, "tidb", "basic-tidb-7")
    basic.forget()
    command = {"metadata": {"annotations": {"tidb.pingcap.com/tidb-graceful-shutdown": "delete-pod"}}}
    basic.admin.patch(PODS, "basic-tidb-7", NAMESPACE, command)
    basic.run(60.0)
    assert [] == [write for write in basic.writes() if "basic-tidb-7" in write]
    assert theirs["metadata"]["uid"] == basic.get(PODS, "basic-tidb-7")["metadata"]["uid"]


@pytest.mark.slow
@pytest.mark.rule("11")
def test_a_recreated_cluster_adopts_orphans(basic: OperatorWorld) -> None:
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in basic.every(PODS)}
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE, propagation="Orphan")
    basic.run_until(lambda: not basic.exists(TIDB_CLUSTERS, "basic"))
    basic.run(5.0)
    basic.apply(sample("basic"))
    basic.run_until_ready()

    uid = basic.cluster()["metadata"]["uid"]
    for resource in (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS):
        owners = {
            each["metadata"]["name"]: [owner["uid"] for owner in each["metadata"].get("ownerReferences", ())]
            for each in basic.every(resource)
            if each["metadata"]["name"].startswith("basic-")
        }
        assert {(name, uid) for name in owners} == {(name, owner) for name, found in owners.items() for owner in found}
    assert before == {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in basic.every(PODS)}


@pytest.mark.slow
@pytest.mark.rule("F4")
def test_waits_for_the_deletion_of_a_former_clusters_objects(basic: OperatorWorld) -> None:
    """Kubernetes deletes the objects of the previous TidbCluster in the background."""
    basic.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    basic.apply(sample("basic"))
    basic.run_until_ready(within=120.0)
    assert [] == basic.events("ForeignOwner")


_ADVANCED: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "statefulsets.apps.pingcap.com"},
    "spec": {
        "group": "apps.pingcap.com",
        "scope": "Namespaced",
        "names": {"plural": "statefulsets", "singular": "statefulset", "kind": "StatefulSet"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


def advanced(world: OperatorWorld, component: str, **metadata: object) -> Json:
    """An Advanced StatefulSet with the name of our StatefulSet, as v1.6 leaves it with its feature gate."""
    world.admin.create(CUSTOM_RESOURCE_DEFINITIONS, _ADVANCED)
    meta = {"name": f"basic-{component}", "labels": LABELS} | metadata
    body = {"apiVersion": "apps.pingcap.com/v1", "kind": "StatefulSet", "metadata": meta, "spec": {"replicas": 1}}
    return world.admin.create(ADVANCED_STATEFUL_SETS, body, NAMESPACE).decode()


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_creates_no_stateful_set_beside_an_advanced_one(world: OperatorWorld) -> None:
    advanced(world, "pd")
    world.apply(sample("basic"))
    world.run_until(lambda: world.reason() == "ForeignOwner")
    what = "StatefulSet basic-pd of apps.pingcap.com/v1 exists, and this TidbCluster does not control it"
    assert what in world.condition("Progressing")["message"]
    world.run(60.0)
    assert [] == world.every(STATEFUL_SETS)

    world.admin.delete(ADVANCED_STATEFUL_SETS, "basic-pd", NAMESPACE)
    world.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_waits_for_the_controller_of_advanced_stateful_sets_before_it_moves_one(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    uid = world.cluster()["metadata"]["uid"]
    kind = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster"}
    there = advanced(world, "pd", ownerReferences=[kind | {"name": "basic", "uid": uid, "controller": True}])
    world.run_until(lambda: world.reason() == "Converting")
    what = "waiting for the controller of Advanced StatefulSets to report the revision of basic-pd; check that it runs"
    assert what in world.condition("Progressing")["message"]
    world.run(60.0)
    assert ([], there) == (world.every(STATEFUL_SETS), world.get(ADVANCED_STATEFUL_SETS, "basic-pd"))


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_creates_no_stateful_set_beside_the_pods_of_an_advanced_one(world: OperatorWorld) -> None:
    there = advanced(world, "tidb")
    kind = {"apiVersion": "apps.pingcap.com/v1", "kind": "StatefulSet"}
    owner = kind | {"name": "basic-tidb", "uid": there["metadata"]["uid"], "controller": True}
    meta = {
        "name": "basic-tidb-0",
        "labels": LABELS | {"app.kubernetes.io/component": "tidb"},
        "ownerReferences": [owner],
    }
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    world.admin.create(PODS, {"metadata": meta, "spec": spec}, NAMESPACE)
    world.apply(sample("basic"))
    world.run_until(lambda: world.reason() == "ForeignOwner")
    world.run(60.0)
    assert {"basic-pd", "basic-tikv"} == {each["metadata"]["name"] for each in world.every(STATEFUL_SETS)}


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_a_running_cluster_never_reads_advanced_stateful_sets(basic: OperatorWorld) -> None:
    basic.change(tidb={"replicas": 2})
    basic.run_until_ready()
    basic.run(60.0)
    assert not [read for read in basic.reads() if "apps.pingcap.com" in read]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resource", "name", "theirs"),
    [
        (SERVICES, "basic-pd", {"spec": {"type": "NodePort"}}),
        (PODS, "basic-tikv-0", {"metadata": {"labels": {"tidb.pingcap.com/cluster-id": "1"}}}),
        (PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-0", {"metadata": {"labels": {"app.kubernetes.io/name": "theirs"}}}),
    ],
    ids=["Service", "Pod", "PersistentVolumeClaim"],
)
@pytest.mark.rule("I29")
def test_names_a_value_that_another_controller_insists_on_and_stops_rewriting_it(
    world: OperatorWorld, resource: Resource, name: str, theirs: Json
) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()
    world.forget()
    for _ in range(300):
        world.admin.patch(resource, name, NAMESPACE, theirs)
        world.run(1.0)
    # three times at once, then once a minute, together with objects that are labelled after a pod
    assert len([each for each in world.writes() if resource.plural in each and name in each]) <= 8
    assert len([each for each in world.writes() if "/status" in each]) <= 8
    assert ("Contested", True) == (world.reason(), world.is_ready())
    assert f"{resource.kind} {name}: " in world.condition("Progressing")["message"]

    world.change(tidb={"replicas": 2})
    world.run_until(lambda: world.replicas("tidb") == 2)
    world.run(180.0)
    assert "Done" == world.reason()


@pytest.mark.slow
@pytest.mark.parametrize("resource", [SERVICES, CONFIG_MAPS], ids=str)
@pytest.mark.rule("I29")
def test_names_an_object_that_another_controller_keeps_deleting_and_stops_recreating_it(
    world: OperatorWorld, resource: Resource
) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()
    name = next(each["metadata"]["name"] for each in world.every(resource) if "basic-tidb" in each["metadata"]["name"])
    world.forget()
    for _ in range(300):
        if world.exists(resource, name):
            world.admin.delete(resource, name, NAMESPACE)
        world.run(1.0)
    assert len([each for each in world.writes() if each == f"create {resource} {name}"]) <= 8
    assert len([each for each in world.writes() if "/status" in each]) <= 10
    assert "Contested" == world.reason()
    assert f"{resource.kind} {name} is deleted each time" in world.condition("Progressing")["message"]

    world.run(120.0)
    assert "Done" == world.reason()
