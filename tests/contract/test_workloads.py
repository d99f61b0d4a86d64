"""The controllers' results for StatefulSets, Deployments and claims, with the sandbox's nodes under both worlds."""

import itertools
from typing import Any

import pytest

from kube.client import STRATEGIC_MERGE_PATCH
from kube.errors import Forbidden, Invalid
from kube.objects import Json
from kube.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
)
from sandbox.conditions import holds
from sandbox.controllers.volumes import standard_storage_class
from tests.contract.objects import IMAGE, claim, claim_template, deployment, pod, stateful_set
from tests.contract.worlds import Side, eventually, throughout

NEXT_IMAGE = "registry.example/idle:v2"
LAST_IMAGE = "registry.example/idle:v3"
NEVER_READY = {"readinessProbe": {"tcpSocket": {"port": 9999}, "periodSeconds": 1}}
"""A container that never becomes Ready: nothing listens there."""


class Namespaced:
    """A namespace and what happens in it, in short words."""

    def __init__(self, world: Side, namespace: str) -> None:
        self.client = world.client
        self.world = world
        self.name = namespace

    def create(self, resource: Resource, body: Json) -> Json:
        return self.client.create(resource, body, self.name).decode()

    def get(self, resource: Resource, name: str) -> Json:
        return self.client.get(resource, name, self.name).decode()

    def patch(self, resource: Resource, name: str, spec: Json) -> None:
        self.client.patch(resource, name, self.name, {"spec": spec})

    def delete(self, resource: Resource, name: str, propagation: str = "") -> None:
        self.client.delete(resource, name, self.name, propagation=propagation)

    def hold(self, resource: Resource, name: str) -> None:
        """Keep a deleted object Terminating until it is released."""
        self.client.patch(resource, name, self.name, {"metadata": {"finalizers": ["example.com/hold"]}})

    def let_go(self, resource: Resource, name: str) -> None:
        self.client.patch(resource, name, self.name, {"metadata": {"finalizers": None}})

    def names(self, resource: Resource) -> list[str]:
        return sorted(item.metadata.name for item in self.client.list_page(resource, self.name).items)

    def images(self) -> dict[str, str]:
        """The image of each pod that is not going."""
        pods = [item.decode() for item in self.client.list_page(PODS, self.name).items]
        return {
            each["metadata"]["name"]: each["spec"]["containers"][0]["image"].rpartition(":")[2]
            for each in pods
            if "deletionTimestamp" not in each["metadata"]
        }

    def status(self, resource: Resource, name: str) -> Json:
        status: Json = self.get(resource, name).get("status", {})
        return status

    def wait_for_ready(self, resource: Resource, name: str, count: int) -> None:
        eventually(lambda: self.status(resource, name).get("readyReplicas", 0) == count)

    def wait_for(self, resource: Resource, name: str, **expected: Any) -> None:
        eventually(lambda: expected.items() <= self.status(resource, name).items())

    def warning(self, kind: str, reason: str) -> str:
        """The message of the first warning about something of a kind."""
        selector = f"involvedObject.kind={kind},reason={reason},type=Warning"

        def found() -> list[str]:
            events = self.client.list_page(EVENTS, self.name, field_selector=selector).items
            return [str(each.decode()["message"]) for each in events]

        return eventually(found)[0]


@pytest.fixture
def here(world: Side, namespace: str) -> Namespaced:
    """The namespace of the test."""
    return Namespaced(world, namespace)


def with_image(image: str) -> Json:
    """A patch of a workload's spec. The list is replaced as a whole."""
    return {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}


def test_pods_of_a_stateful_set_have_an_identity(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 2))
    here.wait_for_ready(STATEFUL_SETS, "db", 2)

    second = here.get(PODS, "db-1")
    node = here.client.get(NODES, second["spec"]["nodeName"]).metadata.labels
    revision = here.status(STATEFUL_SETS, "db")["updateRevision"]

    assert ["db-0", "db-1"] == here.names(PODS)
    assert {
        "app": "db",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "db-1",
        "controller-revision-hash": revision,
        "topology.kubernetes.io/region": node["topology.kubernetes.io/region"],
        "topology.kubernetes.io/zone": node["topology.kubernetes.io/zone"],
    } == second["metadata"]["labels"]
    assert ("db-1", "db") == (second["spec"]["hostname"], second["spec"]["subdomain"])
    owner = second["metadata"]["ownerReferences"][0]
    assert ("StatefulSet", "db", True, True) == (
        owner["kind"],
        owner["name"],
        owner["controller"],
        owner["blockOwnerDeletion"],
    )
    assert [revision] == here.names(CONTROLLER_REVISIONS)


def test_a_settled_stateful_set_says_so(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 2))
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=2, availableReplicas=2, updatedReplicas=2)

    status = here.status(STATEFUL_SETS, "db")

    counts = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert {
        *counts,
        "observedGeneration",
        "collisionCount",
        "currentRevision",
        "updateRevision",
    } == status.keys()
    assert {2} == {status[name] for name in counts}
    assert status["currentRevision"] == status["updateRevision"]


def test_ordered_pods_wait_for_the_one_before(here: Namespaced) -> None:
    body = stateful_set("db", 2)
    body["spec"]["template"]["spec"]["containers"][0] |= NEVER_READY
    here.create(STATEFUL_SETS, body)

    eventually(lambda: here.names(PODS) == ["db-0"])

    assert throughout(0.5, lambda: here.names(PODS) == ["db-0"])


def test_parallel_pods_do_not_wait(here: Namespaced) -> None:
    body = stateful_set("db", 3, podManagementPolicy="Parallel")
    body["spec"]["template"]["spec"]["containers"][0] |= NEVER_READY
    here.create(STATEFUL_SETS, body)

    eventually(lambda: here.names(PODS) == ["db-0", "db-1", "db-2"])


def test_a_set_shrinks_from_the_top(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 3, podManagementPolicy="Parallel"))
    here.wait_for_ready(STATEFUL_SETS, "db", 3)

    here.patch(STATEFUL_SETS, "db", {"replicas": 1})

    eventually(lambda: here.names(PODS) == ["db-0"])
    here.wait_for(STATEFUL_SETS, "db", replicas=1, readyReplicas=1)


def test_ordinals_may_start_later(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 2, ordinals={"start": 3}))

    eventually(lambda: here.names(PODS) == ["db-3", "db-4"])


def test_a_deleted_pod_is_recreated_on_its_claim(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[claim_template("data")]))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    before, volume = here.get(PODS, "db-0")["metadata"]["uid"], here.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")

    here.delete(PODS, "db-0")

    eventually(lambda: "db-0" in here.images() and here.get(PODS, "db-0")["metadata"]["uid"] != before)
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    after = here.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")
    assert (volume["metadata"]["uid"], volume["spec"]["volumeName"]) == (
        after["metadata"]["uid"],
        after["spec"]["volumeName"],
    )


def test_a_rolling_update_stops_at_the_partition(here: Namespaced) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    here.create(STATEFUL_SETS, stateful_set("db", 3, podManagementPolicy="Parallel", updateStrategy=strategy))
    here.wait_for_ready(STATEFUL_SETS, "db", 3)

    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    eventually(lambda: here.images() == {"db-0": "v1", "db-1": "v1", "db-2": "v2"})
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=3, currentReplicas=2, updatedReplicas=1)
    status = here.status(STATEFUL_SETS, "db")
    assert status["currentRevision"] != status["updateRevision"]
    assert 2 == len(here.names(CONTROLLER_REVISIONS))

    here.patch(STATEFUL_SETS, "db", {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    eventually(lambda: set(here.images().values()) == {"v2"} and len(here.images()) == 3)
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=3, currentReplicas=3, updatedReplicas=3)
    status = here.status(STATEFUL_SETS, "db")
    assert status["currentRevision"] == status["updateRevision"]


def test_a_pod_below_the_partition_is_recreated_with_its_old_revision(here: Namespaced) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    here.create(STATEFUL_SETS, stateful_set("db", 2, updateStrategy=strategy))
    here.wait_for_ready(STATEFUL_SETS, "db", 2)
    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    uid = here.get(PODS, "db-0")["metadata"]["uid"]

    here.delete(PODS, "db-0")

    eventually(lambda: "db-0" in here.images() and here.get(PODS, "db-0")["metadata"]["uid"] != uid)
    assert {"db-0": "v1", "db-1": "v1"} == here.images()


def test_the_old_template_is_the_old_revision(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    first = here.status(STATEFUL_SETS, "db")["updateRevision"]

    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    eventually(lambda: here.status(STATEFUL_SETS, "db")["updateRevision"] != first)
    here.patch(STATEFUL_SETS, "db", with_image(IMAGE))

    here.wait_for(STATEFUL_SETS, "db", updateRevision=first)
    assert 2 == len(here.names(CONTROLLER_REVISIONS))


@pytest.mark.slow
def test_a_new_template_in_the_middle_of_a_roll_supersedes_the_one_before(here: Namespaced) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    here.create(STATEFUL_SETS, stateful_set("db", 3, podManagementPolicy="Parallel", updateStrategy=strategy))
    here.wait_for_ready(STATEFUL_SETS, "db", 3)
    first = here.status(STATEFUL_SETS, "db")["currentRevision"]
    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=3, updatedReplicas=2)
    uid = here.get(PODS, "db-0")["metadata"]["uid"]

    here.patch(STATEFUL_SETS, "db", with_image(LAST_IMAGE))
    eventually(lambda: here.images() == {"db-0": "v1", "db-1": "v3", "db-2": "v3"})
    here.wait_for(STATEFUL_SETS, "db", currentRevision=first, currentReplicas=1, updatedReplicas=2, readyReplicas=3)
    assert 3 == len(here.names(CONTROLLER_REVISIONS))

    here.delete(PODS, "db-0")
    eventually(lambda: "db-0" in here.images() and here.get(PODS, "db-0")["metadata"]["uid"] != uid)
    # a pod below the partition is recreated with the revision from before both changes
    assert "v1" == here.images()["db-0"]
    here.patch(STATEFUL_SETS, "db", {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    eventually(lambda: set(here.images().values()) == {"v3"} and len(here.images()) == 3)


def test_a_broken_revision_is_left_by_going_back(here: Namespaced) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    here.create(STATEFUL_SETS, stateful_set("db", 2, podManagementPolicy="Parallel", updateStrategy=strategy))
    here.wait_for_ready(STATEFUL_SETS, "db", 2)
    first = here.status(STATEFUL_SETS, "db")["currentRevision"]
    broken = {"name": "main", "image": NEXT_IMAGE, **NEVER_READY}
    here.patch(STATEFUL_SETS, "db", {"template": {"spec": {"containers": [broken]}}})
    eventually(lambda: here.images() == {"db-0": "v1", "db-1": "v2"})
    eventually(lambda: here.status(STATEFUL_SETS, "db").get("readyReplicas") == 1)
    assert throughout(0.5, lambda: here.status(STATEFUL_SETS, "db").get("readyReplicas") == 1)

    here.patch(STATEFUL_SETS, "db", {"template": {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}})

    # the pod that never became Ready is replaced all the same, and the old revision serves again
    eventually(lambda: here.images() == {"db-0": "v1", "db-1": "v1"})
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=2, currentReplicas=2, updatedReplicas=2)
    status = here.status(STATEFUL_SETS, "db")
    assert (first, first) == (status["currentRevision"], status["updateRevision"])


def test_a_set_recreated_around_orphans_knows_only_its_own_revision(here: Namespaced) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    before = stateful_set("db", 2, podManagementPolicy="Parallel", updateStrategy=strategy)
    here.create(STATEFUL_SETS, before)
    here.wait_for_ready(STATEFUL_SETS, "db", 2)
    uid = here.get(PODS, "db-0")["metadata"]["uid"]
    here.delete(STATEFUL_SETS, "db", "Orphan")
    eventually(lambda: here.names(STATEFUL_SETS) == [])

    after = stateful_set("db", 2, podManagementPolicy="Parallel", updateStrategy=strategy)
    after["spec"]["template"]["spec"]["containers"][0]["image"] = NEXT_IMAGE
    here.create(STATEFUL_SETS, after)

    eventually(lambda: here.status(STATEFUL_SETS, "db").get("replicas") == 2)
    status = here.status(STATEFUL_SETS, "db")
    assert status["currentRevision"] == status["updateRevision"]
    assert {"db-0": "v1", "db-1": "v1"} == here.images()
    here.delete(PODS, "db-0")
    eventually(lambda: "db-0" in here.images() and here.get(PODS, "db-0")["metadata"]["uid"] != uid)
    # the partition protects nothing here
    assert "v2" == here.images()["db-0"]


def leave_behind(here: Namespaced, ordinal: int) -> None:
    """A StatefulSet of four is recreated while one pod of the old one stays Terminating, as on a lost machine."""
    body = stateful_set("db", 4, podManagementPolicy="Parallel")
    here.create(STATEFUL_SETS, body)
    here.wait_for_ready(STATEFUL_SETS, "db", 4)
    here.hold(PODS, f"db-{ordinal}")
    here.delete(STATEFUL_SETS, "db", "Background")
    eventually(lambda: here.names(PODS) == [f"db-{ordinal}"])
    here.create(STATEFUL_SETS, body)


def release_pod(here: Namespaced, ordinal: int) -> None:
    """Let the Terminating pod go, and wait until its StatefulSet has four ready pods.

    kube-controller-manager ignores the end of a pod that an older set owns, and each event of another pod doubles its
    back-off, to a minute on a slow machine. An update of the set makes it try at once.
    """
    here.let_go(PODS, f"db-{ordinal}")
    attempts = itertools.count()

    def ready() -> bool:
        annotations = {"example.com/attempt": str(next(attempts))}
        here.client.patch(STATEFUL_SETS, "db", here.name, {"metadata": {"annotations": annotations}})
        return bool(here.status(STATEFUL_SETS, "db").get("readyReplicas") == 4)

    eventually(ready)


def test_a_set_does_not_count_the_pod_of_an_older_one_of_its_name(here: Namespaced) -> None:
    leave_behind(here, 3)
    here.wait_for(STATEFUL_SETS, "db", replicas=3, readyReplicas=3)

    assert throughout(1, lambda: here.status(STATEFUL_SETS, "db")["replicas"] == 3)
    release_pod(here, 3)


def test_a_pod_that_cannot_be_created_blocks_the_pods_after_it(here: Namespaced) -> None:
    """Pods are created in parallel in groups of one, two, four, ...: after a failure, no further group begins."""
    leave_behind(here, 1)
    eventually(lambda: {"db-0", "db-2"} <= here.images().keys())

    assert throughout(3, lambda: "db-3" not in here.images())
    release_pod(here, 1)


def test_nothing_is_created_or_deleted_behind_the_first_obstructing_pod(here: Namespaced) -> None:
    leave_behind(here, 0)

    assert throughout(2, lambda: not here.images())
    release_pod(here, 0)


def test_a_set_whose_pods_lack_one_of_its_volumes_does_nothing_more(here: Namespaced) -> None:
    """A pod's volume cannot change, and the controller does nothing for pods after one that it cannot correct."""
    here.create(STATEFUL_SETS, stateful_set("db", 3, podManagementPolicy="Parallel"))
    here.wait_for_ready(STATEFUL_SETS, "db", 3)
    here.delete(STATEFUL_SETS, "db", "Orphan")
    eventually(lambda: here.names(STATEFUL_SETS) == [])

    here.create(
        STATEFUL_SETS,
        stateful_set("db", 3, podManagementPolicy="Parallel", volumeClaimTemplates=[claim_template("data")]),
    )
    assert "Update Pod db-0 in StatefulSet db failed error" in here.warning("StatefulSet", "FailedUpdate")
    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    here.delete(PODS, "db-2")

    assert throughout(2, lambda: set(here.images().values()) <= {"v1"})
    assert {"db-0", "db-1"} == here.images().keys()
    assert ["data-db-0"] == here.names(PERSISTENT_VOLUME_CLAIMS)


def test_no_pod_is_created_while_its_claim_is_being_deleted(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[claim_template("data")]))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    here.hold(PERSISTENT_VOLUME_CLAIMS, "data-db-0")
    here.patch(STATEFUL_SETS, "db", {"replicas": 0})
    eventually(lambda: here.names(PODS) == [])
    here.delete(PERSISTENT_VOLUME_CLAIMS, "data-db-0")
    # by then the controller's cache shows the deletion
    assert throughout(1, lambda: here.names(PODS) == [])

    here.patch(STATEFUL_SETS, "db", {"replicas": 1})

    told = "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
    assert told == here.warning("StatefulSet", "FailedCreate")
    assert throughout(1, lambda: here.names(PODS) == [])
    here.let_go(PERSISTENT_VOLUME_CLAIMS, "data-db-0")
    here.wait_for_ready(STATEFUL_SETS, "db", 1)


def test_pods_are_not_replaced_on_delete_only(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1, updateStrategy={"type": "OnDelete"}))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)

    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    eventually(lambda: here.status(STATEFUL_SETS, "db")["observedGeneration"] == 2)
    assert throughout(0.5, lambda: here.images() == {"db-0": "v1"})
    here.delete(PODS, "db-0")

    eventually(lambda: here.images() == {"db-0": "v2"})


def test_a_roll_under_on_delete_completes_once_the_strategy_is_a_rolling_update(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 2, updateStrategy={"type": "OnDelete"}))
    here.wait_for_ready(STATEFUL_SETS, "db", 2)
    first = here.status(STATEFUL_SETS, "db")["updateRevision"]
    here.patch(STATEFUL_SETS, "db", with_image(NEXT_IMAGE))
    eventually(lambda: here.status(STATEFUL_SETS, "db")["updateRevision"] != first)
    here.delete(PODS, "db-0")
    here.wait_for(STATEFUL_SETS, "db", readyReplicas=2, currentReplicas=1, updatedReplicas=1, currentRevision=first)

    def strategy(partition: int) -> Json:
        return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}

    here.patch(STATEFUL_SETS, "db", strategy(2))
    assert throughout(0.5, lambda: here.images() == {"db-0": "v2", "db-1": "v1"})
    here.patch(STATEFUL_SETS, "db", strategy(0))
    eventually(lambda: here.images() == {"db-0": "v2", "db-1": "v2"})
    eventually(lambda: here.status(STATEFUL_SETS, "db")["currentRevision"] != first)


def test_claims_outlive_pods_by_default(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 2, volumeClaimTemplates=[claim_template("data")]))
    here.wait_for_ready(STATEFUL_SETS, "db", 2)

    here.patch(STATEFUL_SETS, "db", {"replicas": 1})
    eventually(lambda: here.names(PODS) == ["db-0"])
    here.delete(STATEFUL_SETS, "db", "Foreground")
    eventually(lambda: here.names(PODS) == [] == here.names(STATEFUL_SETS))

    assert ["data-db-0", "data-db-1"] == here.names(PERSISTENT_VOLUME_CLAIMS)


def test_claims_may_go_with_scale_and_set(here: Namespaced) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    templates = [claim_template("data")]
    body = stateful_set("db", 2, volumeClaimTemplates=templates, persistentVolumeClaimRetentionPolicy=policy)
    here.create(STATEFUL_SETS, body)
    here.wait_for_ready(STATEFUL_SETS, "db", 2)

    here.patch(STATEFUL_SETS, "db", {"replicas": 1})
    eventually(lambda: here.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0"])
    here.delete(STATEFUL_SETS, "db", "Background")

    eventually(lambda: here.names(PERSISTENT_VOLUME_CLAIMS) == [])


def test_orphaned_pods_are_adopted_again(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    uid = here.get(PODS, "db-0")["metadata"]["uid"]

    here.delete(STATEFUL_SETS, "db", "Orphan")
    eventually(lambda: here.names(STATEFUL_SETS) == [])
    again = here.create(STATEFUL_SETS, stateful_set("db", 1))["metadata"]["uid"]

    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    adopted = here.get(PODS, "db-0")["metadata"]
    assert (uid, [again]) == (adopted["uid"], [each["uid"] for each in adopted["ownerReferences"]])


def test_most_of_a_stateful_set_is_immutable(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 0))

    with pytest.raises(Invalid, match="updates to statefulset spec for fields other than"):
        here.patch(STATEFUL_SETS, "db", {"serviceName": "other"})


def test_scale_is_a_small_door(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 0))
    here.wait_for(STATEFUL_SETS, "db", observedGeneration=1)
    path = STATEFUL_SETS.path(here.name, "db", "scale")

    scale = here.world.send("GET", path).tree
    scaled = here.world.send("PUT", path, scale | {"spec": {"replicas": 1}})

    assert ("Scale", "autoscaling/v1", "app=db") == (scale["kind"], scale["apiVersion"], scale["status"]["selector"])
    assert (200, {"replicas": 1}) == (scaled.status, scaled.tree["spec"])
    here.wait_for_ready(STATEFUL_SETS, "db", 1)


def test_a_deployment_rolls_through_replica_sets(here: Namespaced) -> None:
    here.create(DEPLOYMENTS, deployment("web", 2))
    here.wait_for(DEPLOYMENTS, "web", readyReplicas=2, updatedReplicas=2, availableReplicas=2)
    first = here.names(REPLICA_SETS)

    here.patch(DEPLOYMENTS, "web", with_image(NEXT_IMAGE))

    eventually(lambda: sorted(here.images().values()) == ["v2", "v2"])
    here.wait_for(DEPLOYMENTS, "web", replicas=2, readyReplicas=2, updatedReplicas=2, observedGeneration=2)
    assert 1 == len(first)
    assert 2 == len(here.names(REPLICA_SETS))
    assert "2" == here.get(DEPLOYMENTS, "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    newest = next(name for name in here.names(REPLICA_SETS) if name not in first)
    done = f'ReplicaSet "{newest}" has successfully progressed.'
    eventually(lambda: done in {each["message"] for each in here.status(DEPLOYMENTS, "web")["conditions"]})
    conditions = here.status(DEPLOYMENTS, "web")["conditions"]
    assert {
        ("Available", "True", "Deployment has minimum availability."),
        ("Progressing", "True", done),
    } == {(each["type"], each["status"], each["message"]) for each in conditions}
    assert all("lastUpdateTime" in each for each in conditions)


def test_a_deployment_says_that_its_pods_are_refused_as_long_as_they_are(here: Namespaced) -> None:
    body = deployment("web", 1)
    body["spec"]["template"]["spec"]["serviceAccountName"] = "nope"
    here.create(DEPLOYMENTS, body)

    def failures() -> list[Json]:
        conditions: list[Json] = here.status(DEPLOYMENTS, "web").get("conditions") or []
        return [each for each in conditions if each["type"] == "ReplicaFailure"]

    (failure,) = eventually(failures)
    assert ("True", "FailedCreate") == (failure["status"], failure["reason"])
    assert "error looking up service account" in failure["message"]
    here.create(SERVICE_ACCOUNTS, {"metadata": {"name": "nope"}})
    here.wait_for_ready(DEPLOYMENTS, "web", 1)
    eventually(lambda: not failures())


def test_a_deployment_takes_its_pods_with_it(here: Namespaced) -> None:
    here.create(DEPLOYMENTS, deployment("web", 1))
    here.wait_for_ready(DEPLOYMENTS, "web", 1)
    replica_set = here.names(REPLICA_SETS)[0]
    assert here.names(PODS)[0].startswith(f"{replica_set}-")

    here.delete(DEPLOYMENTS, "web", "Background")

    eventually(lambda: here.names(REPLICA_SETS) == [] == here.names(PODS))


def test_a_claim_waits_for_its_first_pod_and_binds_on_its_node(here: Namespaced) -> None:
    here.create(PERSISTENT_VOLUME_CLAIMS, claim("data"))
    assert throughout(0.3, lambda: here.status(PERSISTENT_VOLUME_CLAIMS, "data")["phase"] == "Pending")

    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    here.create(PODS, pod("user", volumes=volumes))

    here.wait_for(PERSISTENT_VOLUME_CLAIMS, "data", phase="Bound")
    bound = here.get(PERSISTENT_VOLUME_CLAIMS, "data")
    volume = here.client.get(PERSISTENT_VOLUMES, bound["spec"]["volumeName"]).decode()
    assert ("Bound", "data", bound["metadata"]["uid"]) == (
        volume["status"]["phase"],
        volume["spec"]["claimRef"]["name"],
        volume["spec"]["claimRef"]["uid"],
    )
    assert {"storage": "1Gi"} == bound["status"]["capacity"]
    eventually(lambda: holds(here.get(PODS, "user"), "Ready"))
    node = here.client.get(NODES, here.get(PODS, "user")["spec"]["nodeName"]).metadata
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    values = [value for term in terms for each in term["matchExpressions"] for value in each["values"]]
    assert set(values) <= set(node.labels.values())


def test_a_claim_in_use_is_protected(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[claim_template("data")]))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)

    here.delete(PERSISTENT_VOLUME_CLAIMS, "data-db-0")

    assert ["kubernetes.io/pvc-protection"] == here.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")["metadata"]["finalizers"]
    here.patch(STATEFUL_SETS, "db", {"replicas": 0})
    eventually(lambda: here.names(PERSISTENT_VOLUME_CLAIMS) == [])


def test_a_bound_claim_may_grow_but_not_shrink(here: Namespaced) -> None:
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[claim_template("data")]))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)

    here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"resources": {"requests": {"storage": "2Gi"}}})

    with pytest.raises(Invalid, match="field can not be less than"):
        here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"resources": {"requests": {"storage": "512Mi"}}})
    with pytest.raises(Invalid, match="spec is immutable after creation"):
        here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"accessModes": ["ReadWriteMany"]})


def test_a_claim_grows_only_when_it_is_bound_and_its_class_allows_it(here: Namespaced) -> None:
    name = f"{here.name}-fixed"
    fixed = standard_storage_class() | {"metadata": {"name": name}, "allowVolumeExpansion": False}
    here.client.create(STORAGE_CLASSES, fixed)
    template = claim_template("data")
    template["spec"]["storageClassName"] = name
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[template]))
    here.create(PERSISTENT_VOLUME_CLAIMS, claim("free"))
    here.wait_for_ready(STATEFUL_SETS, "db", 1)
    grown = {"resources": {"requests": {"storage": "2Gi"}}}

    with pytest.raises(Forbidden, match="the storageclass that provisions the pvc must support resize"):
        here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", grown)
    with pytest.raises(Invalid, match="for bound claims"):
        here.patch(PERSISTENT_VOLUME_CLAIMS, "free", grown)


def test_a_driver_gives_a_claim_another_attributes_class(here: Namespaced) -> None:
    name, resource = f"{here.name}-ebs", VOLUME_ATTRIBUTES_CLASSES
    provided = standard_storage_class() | {"metadata": {"name": name}, "provisioner": "ebs.csi.aws.com"}
    here.client.create(STORAGE_CLASSES, provided)
    template = claim_template("data")
    template["spec"]["storageClassName"] = name
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[template]))
    attributes = {"apiVersion": "storage.k8s.io/v1", "kind": resource.kind, "metadata": {"name": name}}
    for missing in ({"driverName": "ebs.csi.aws.com"}, {"driverName": "", "parameters": {"type": "gp3"}}):
        with pytest.raises(Invalid, match="Required value"):
            here.client.create(resource, attributes | missing)
    here.client.create(resource, attributes | {"driverName": "ebs.csi.aws.com", "parameters": {"type": "gp3"}})
    for changed in ({"driverName": "other"}, {"parameters": {"type": "io2"}}):
        with pytest.raises(Invalid, match=r"updates to \w+ are forbidden\."):
            here.client.patch(resource, name, "", changed)
    here.wait_for_ready(STATEFUL_SETS, "db", 1)

    def progress() -> tuple[str, bool]:
        status = here.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0")["status"]
        return status.get("currentVolumeAttributesClassName", ""), "modifyVolumeStatus" in status

    here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"volumeAttributesClassName": "nope"})
    eventually(lambda: progress() == ("", True))
    here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"volumeAttributesClassName": name})
    eventually(lambda: progress() == (name, False))
    with pytest.raises(Invalid, match="update to nil is forbidden when status"):
        here.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", {"volumeAttributesClassName": None})


def test_a_claim_of_a_class_that_is_none_says_so(here: Namespaced) -> None:
    template = claim_template("data")
    template["spec"]["storageClassName"] = "nope"
    here.create(STATEFUL_SETS, stateful_set("db", 1, volumeClaimTemplates=[template]))

    assert 'storageclass.storage.k8s.io "nope" not found' == here.warning("PersistentVolumeClaim", "ProvisioningFailed")


def test_a_volume_is_deleted_with_its_claim_unless_it_is_retained(here: Namespaced) -> None:
    body = stateful_set("db", 2, podManagementPolicy="Parallel", volumeClaimTemplates=[claim_template("data")])
    here.create(STATEFUL_SETS, body)
    here.wait_for_ready(STATEFUL_SETS, "db", 2)
    claims = ("data-db-0", "data-db-1")
    kept, gone = (here.get(PERSISTENT_VOLUME_CLAIMS, each)["spec"]["volumeName"] for each in claims)
    here.client.patch(PERSISTENT_VOLUMES, kept, "", {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    here.patch(STATEFUL_SETS, "db", {"replicas": 0})

    for each in claims:
        here.delete(PERSISTENT_VOLUME_CLAIMS, each)

    eventually(lambda: not here.world.exists(PERSISTENT_VOLUMES, gone))
    eventually(lambda: here.client.get(PERSISTENT_VOLUMES, kept).decode().get("status", {}).get("phase") == "Released")
    here.client.delete(PERSISTENT_VOLUMES, kept)


def test_a_pod_that_fits_no_node_stays_pending_and_says_why(here: Namespaced) -> None:
    here.create(PODS, pod("lost", nodeSelector={"nowhere": "here"}))

    eventually(lambda: here.get(PODS, "lost")["status"].get("conditions"))

    scheduled = next(each for each in here.status(PODS, "lost")["conditions"] if each["type"] == "PodScheduled")
    assert ("Pending", "False", "Unschedulable") == (
        here.status(PODS, "lost")["phase"],
        scheduled["status"],
        scheduled["reason"],
    )


def test_an_image_can_be_changed_in_a_pod_and_nothing_else(here: Namespaced) -> None:
    here.create(PODS, pod("one"))

    container = {"name": "main", "image": NEXT_IMAGE}
    patch = {"spec": {"containers": [container]}}
    here.client.patch(PODS, "one", here.name, patch, content_type=STRATEGIC_MERGE_PATCH)

    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        here.patch(PODS, "one", {"hostname": "other"})


def test_a_pod_gets_time_to_end(here: Namespaced) -> None:
    here.create(PODS, pod("one", terminationGracePeriodSeconds=5))
    eventually(lambda: holds(here.get(PODS, "one"), "Ready"))

    going = here.world.send("DELETE", PODS.path(here.name, "one")).tree

    assert 5 == going["metadata"]["deletionGracePeriodSeconds"]
    eventually(lambda: here.names(PODS) == [])
