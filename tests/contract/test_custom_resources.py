"""TidbClusters under our CustomResourceDefinition: pruned, defaulted, validated."""

import re
from collections.abc import Iterator

import pytest

from apis import crd
from kube.client import JSON_PATCH
from kube.errors import Invalid, NotFound
from kube.objects import Json
from kube.resources import BACKUPS, CUSTOM_RESOURCE_DEFINITIONS, TIDB_CLUSTERS, Resource
from sandbox.conditions import holds
from tests.contract.objects import tidb_cluster
from tests.contract.worlds import Side, eventually

OLD_CLUSTERS = Resource("v16.example.com", "v1alpha1", "tidbclusters", "TidbCluster")


def test_our_definition_is_established_and_structural(world: Side) -> None:
    definition = world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "tidbclusters.pingcap.com").decode()

    assert holds(definition, "Established")
    assert holds(definition, "NamesAccepted")
    assert not holds(definition, "NonStructuralSchema")
    assert ["v1alpha1"] == definition["status"]["storedVersions"]
    assert ["tc"] == definition["status"]["acceptedNames"]["shortNames"]


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.name)
def test_each_of_our_definitions_is_served(world: Side, namespace: str, kind: crd.Kind) -> None:
    definition = world.client.get(CUSTOM_RESOURCE_DEFINITIONS, f"{kind.plural}.pingcap.com").decode()
    assert (True, False) == (holds(definition, "Established"), holds(definition, "NonStructuralSchema"))
    # 429 as long as the API server sets up the storage of the definition
    path = f"/apis/pingcap.com/v1alpha1/namespaces/{namespace}/{kind.plural}"
    eventually(lambda: 200 == world.send("GET", path).status)


def test_a_backup_gets_defaults_for_the_fields_that_it_has(world: Side, namespace: str) -> None:
    """The leaves of an absent object stay absent: their readers fill in defaults (backup.md 3.7)."""
    spec = {"s3": {"provider": "aws", "bucket": "b"}, "br": {"cluster": "a"}, "cleanOption": {}}
    body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "Backup", "metadata": {"name": "a"}, "spec": spec}

    made = world.client.create(BACKUPS, body, namespace).decode()
    kept = world.client.patch(BACKUPS, "a", namespace, {"spec": {"backoffRetryPolicy": {"maxRetryTimes": 0}}}).decode()

    assert ("snapshot", "Retain", "all") == tuple(
        made["spec"][key] for key in ("backupMode", "cleanPolicy", "calcSizeLevel")
    )
    assert {"retryCount": 5, "snapshotsDeleteRatio": 1} == made["spec"]["cleanOption"]
    assert "backoffRetryPolicy" not in made["spec"]
    assert {"minRetryDuration": "300s", "maxRetryTimes": 0, "retryTimeout": "30m"} == kept["spec"]["backoffRetryPolicy"]


def test_a_backup_is_refused_what_its_definition_rules_out(world: Side, namespace: str) -> None:
    spec = {"cleanPolicy": "Sometimes", "logSubcommand": "log-resume"}
    body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "Backup", "metadata": {"name": "a"}, "spec": spec}

    with pytest.raises(Invalid) as refused:
        world.client.create(BACKUPS, body, namespace)

    assert 'supported values: "Delete", "OnFailure", "Retain"' in str(refused.value)
    assert 'supported values: "log-pause", "log-start", "log-stop"' in str(refused.value)


def test_unknown_fields_are_pruned(world: Side, namespace: str) -> None:
    body = tidb_cluster("a", unheard={"of": True})

    answer = world.send("POST", TIDB_CLUSTERS.path(namespace), body)

    assert 201 == answer.status
    assert "unheard" not in answer.tree["spec"]


def test_unknown_fields_can_be_refused(world: Side, namespace: str) -> None:
    body = tidb_cluster("a", unheard=True)

    answer = world.send("POST", f"{TIDB_CLUSTERS.path(namespace)}?fieldValidation=Strict", body)

    assert (400, "BadRequest") == (answer.status, answer.reason)
    assert 'strict decoding error: unknown field "spec.unheard"' in answer.tree["message"]


def test_pod_fields_newer_than_the_schema_survive(world: Side, namespace: str) -> None:
    """Kubernetes' own sub-trees are open: what the schema does not know of them is kept."""
    pd = {"replicas": 1, "requests": {"storage": "1Gi"}, "affinity": {"newer": {"than": "us"}}}

    made = world.client.create(TIDB_CLUSTERS, tidb_cluster("a", pd=pd), namespace).decode()

    assert {"newer": {"than": "us"}} == made["spec"]["pd"]["affinity"]


def test_defaults_of_the_schema_are_stored(world: Side, namespace: str) -> None:
    made = world.client.create(TIDB_CLUSTERS, tidb_cluster("a"), namespace).decode()

    assert ("IfNotPresent", "Retain") == (made["spec"]["imagePullPolicy"], made["spec"]["pvReclaimPolicy"])


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({"pd": {"replicas": "three"}}, [("FieldValueTypeInvalid", "spec.pd.replicas")]),
        ({"startScriptVersion": "v9"}, [("FieldValueNotSupported", "spec.startScriptVersion")]),
        ({"pd": {"replicas": -1}}, [("FieldValueInvalid", "spec.pd.replicas")]),
        ({"pd": None, "tikv": {}}, [("FieldValueRequired", "spec.tikv.replicas")]),
    ],
    ids=["type", "enum", "minimum", "required"],
)
def test_refuses_schema_violations_by_field(
    world: Side, namespace: str, change: Json, causes: list[tuple[str, str]]
) -> None:
    with pytest.raises(Invalid) as refused:
        world.client.create(TIDB_CLUSTERS, tidb_cluster("a", **change), namespace)

    found = [(cause.reason, cause.field) for cause in refused.value.details.causes]
    assert set(causes) <= set(found)
    assert ("TidbCluster", "pingcap.com") == (refused.value.details.kind, refused.value.details.group)


def test_the_status_has_a_door_of_its_own(world: Side, namespace: str) -> None:
    made = world.client.create(TIDB_CLUSTERS, tidb_cluster("a") | {"status": {"clusterID": "1"}}, namespace).decode()
    assert "status" not in made

    both = {"spec": {"version": "v9.9.9"}, "status": {"clusterID": "2"}}
    status = world.client.patch(TIDB_CLUSTERS, "a", namespace, both, subresource="status").decode()
    spec = world.client.patch(TIDB_CLUSTERS, "a", namespace, both | {"status": {"clusterID": "3"}}).decode()

    assert ("v8.5.0", "2", 1) == _shown(status)
    assert ("v9.9.9", "2", 2) == _shown(spec)


def _shown(tree: Json) -> tuple[str, str, int]:
    return tree["spec"]["version"], tree["status"]["clusterID"], tree["metadata"]["generation"]


def test_the_scale_of_a_cluster_is_about_tidb(world: Side, namespace: str) -> None:
    tidb = {"replicas": 2, "service": {"type": "ClusterIP"}}
    world.client.create(TIDB_CLUSTERS, tidb_cluster("a", tidb=tidb), namespace)
    status = {"status": {"tidb": {"selector": "app=tidb", "statefulSet": {"replicas": 1}}}}
    world.client.patch(TIDB_CLUSTERS, "a", namespace, status, subresource="status")
    path = TIDB_CLUSTERS.path(namespace, "a", "scale")

    scale = world.send("GET", path).tree
    scaled = world.send("PUT", path, scale | {"spec": {"replicas": 3}})

    assert ({"replicas": 2}, {"replicas": 1, "selector": "app=tidb"}) == (scale["spec"], scale["status"])
    assert (200, {"replicas": 3}) == (scaled.status, scaled.tree["spec"])
    stored = world.client.get(TIDB_CLUSTERS, "a", namespace).decode()["spec"]["tidb"]
    assert (3, {"type": "ClusterIP"}) == (stored["replicas"], stored["service"])


def test_a_cluster_without_tidb_has_no_scale(world: Side, namespace: str) -> None:
    world.client.create(TIDB_CLUSTERS, tidb_cluster("a"), namespace)

    answer = world.send("GET", TIDB_CLUSTERS.path(namespace, "a", "scale"))

    assert (500, "InternalError") == (answer.status, answer.reason)
    assert 'the spec replicas field ".spec.tidb.replicas" does not exist' in answer.tree["message"]


@pytest.fixture
def old_definition(world: Side) -> Iterator[Json]:
    """v1.6's definition, without a status subresource, in a separate group."""
    body = crd.definition(crd.TIDB_CLUSTER, status_subresource=False)
    body["metadata"]["name"] = str(OLD_CLUSTERS)
    body["spec"]["group"] = OLD_CLUSTERS.group
    body["spec"]["names"].pop("shortNames")
    world.client.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    eventually(lambda: world.send("GET", OLD_CLUSTERS.path()).status == 200)
    yield world.client.get(CUSTOM_RESOURCE_DEFINITIONS, str(OLD_CLUSTERS)).decode()
    world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, str(OLD_CLUSTERS))
    eventually(lambda: not world.exists(CUSTOM_RESOURCE_DEFINITIONS, str(OLD_CLUSTERS)))


def test_without_a_status_subresource_the_status_is_written_with_the_object(
    world: Side, namespace: str, old_definition: Json
) -> None:
    """With v1.6's definition the status is part of the object, and writing it increases the generation."""
    body = tidb_cluster("a") | {"apiVersion": OLD_CLUSTERS.api_version, "status": {"clusterID": "1"}}
    world.client.create(OLD_CLUSTERS, body, namespace)

    patched = world.client.patch(OLD_CLUSTERS, "a", namespace, {"status": {"clusterID": "2"}}).decode()

    assert ("v8.5.0", "2", 2) == _shown(patched)
    with pytest.raises(NotFound, match=re.escape(f'{OLD_CLUSTERS} "a" not found')):
        world.client.patch(OLD_CLUSTERS, "a", namespace, {"status": {"clusterID": "3"}}, subresource="status")


def test_defaults_that_a_definition_gets_later_are_read_and_not_written(
    world: Side, namespace: str, old_definition: Json
) -> None:
    body = tidb_cluster("a") | {"apiVersion": OLD_CLUSTERS.api_version}
    made = world.client.create(OLD_CLUSTERS, body, namespace).decode()
    # a patch, since the API server may still be writing the definition's conditions
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/dnsPolicy/default"
    change = [{"op": "add", "path": path, "value": "ClusterFirst"}]
    world.client.patch(CUSTOM_RESOURCE_DEFINITIONS, str(OLD_CLUSTERS), "", change, content_type=JSON_PATCH)

    def defaulted() -> Json | None:
        answer = world.send("GET", OLD_CLUSTERS.path(namespace))
        # 429 as long as the API server sets up the storage of the new definition
        items = answer.tree["items"] if answer.status == 200 else []
        return next((each for each in items if each["spec"].get("dnsPolicy") == "ClusterFirst"), None)

    listed = eventually(defaulted)
    assert listed is not None
    read = world.client.get(OLD_CLUSTERS, "a", namespace).decode()
    assert listed["spec"] == read["spec"]
    assert made["metadata"] == read["metadata"]


def test_deleting_a_definition_deletes_its_objects(world: Side, namespace: str) -> None:
    things = Resource("gone.example.com", "v1", "things", "Thing")
    world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(things))
    eventually(lambda: world.send("GET", things.path()).status == 200)
    world.client.create(
        things, {"apiVersion": things.api_version, "kind": "Thing", "metadata": {"name": "a"}}, namespace
    )

    world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, str(things))

    eventually(lambda: not world.exists(CUSTOM_RESOURCE_DEFINITIONS, str(things)))
    eventually(lambda: world.send("GET", things.path()).status == 404)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Galaxy"}, "spec.scope"),
        ({"group": "other.example.com"}, "metadata.name"),
        ({"versions": []}, "spec.versions"),
    ],
)
def test_a_malformed_definition_is_refused(world: Side, change: Json, field: str) -> None:
    body = definition_of(Resource("bad.example.com", "v1", "things", "Thing"))

    with pytest.raises(Invalid) as refused:
        world.client.create(CUSTOM_RESOURCE_DEFINITIONS, body | {"spec": body["spec"] | change})

    assert field in [cause.field for cause in refused.value.details.causes]


def definition_of(resource: Resource) -> Json:
    """A definition that keeps whatever it is given."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [version],
        },
    }
