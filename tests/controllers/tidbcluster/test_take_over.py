"""Taking over a cluster that TiDB Operator v1.6 made: nothing rolls, and next to nothing is written (design.md 3.5)."""

import json

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
)
from member.labels import CLUSTER_ID, LAST_APPLIED, LAST_APPLIED_POD_TEMPLATE, MEMBER_ID, POD_NAME, STORE_ID
from ports.clock import FakeClock
from sandbox.controllers.volumes import standard_storage_class
from sandbox.dataplane.network import Origin
from sandbox.kubelet.nodes import NodeSpec
from tests.member.recordings import Recording, as_applied, identity
from tests.operator_world import OperatorWorld
from tests.sandbox.clusters import get
from tests.sandbox.scripts import script

RESOURCES = {
    each.kind: each
    for each in (ROLES, SERVICE_ACCOUNTS, ROLE_BINDINGS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, STATEFUL_SETS)
}
_INIT = """set -ex
ordinal=${POD_NAME##*-}
sed s/POD_NUM/${ordinal}/g /etc/tiflash/config_templ.toml > /data0/config.toml
sed s/POD_NUM/${ordinal}/g /etc/tiflash/proxy_templ.toml > /data0/proxy.toml
"""
"""What v1.6 has TiFlash's init container do, in its manner."""
NODES = [
    NodeSpec(f"{part}-{zone}", f"192.168.{row}.{zone}", f"zone-{zone}", labels={"dedicated": part})
    for row, part in enumerate(("pd", "tikv", "tidb"))
    for zone in range(3)
]
"""Machines that the production-like recording asks for."""


class TakenOver:
    """A world with one recorded cluster, running, and an operator that has not looked yet."""

    def __init__(self, recording: str, clock: FakeClock) -> None:
        recorded = Recording(recording)
        (cluster,) = recorded.raw_clusters
        self.world = OperatorWorld(clock=clock, nodes=NODES)
        self.name: str = cluster["metadata"]["name"]
        self.namespace: str = cluster["metadata"]["namespace"]
        self._put(cluster, recorded)

    def _put(self, cluster: Json, recording: Recording) -> None:
        admin, ours = self.world.admin, recording.built()
        if self.namespace != "default":
            admin.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        owner = admin.create(TIDB_CLUSTERS, cluster | {"status": {}}, self.namespace).metadata
        for recorded in recording.items:
            made = as_v16_left_it(recorded, ours[identity(recorded)], owner.uid)
            admin.create(RESOURCES[recorded["kind"]], made, self.namespace)
        for name in storage_classes(recording.items):
            admin.create(STORAGE_CLASSES, standard_storage_class() | {"metadata": {"name": name}})
        self.world.world.run_until_settled()
        cluster_id = str(self._pd("cluster")["id"])
        status = cluster["status"] | {"clusterID": cluster_id}
        admin.patch(TIDB_CLUSTERS, self.name, self.namespace, {"status": status}, subresource="status")
        self._label(cluster_id)
        self.world.forget()

    def _label(self, cluster_id: str) -> None:
        """Pods, claims and volumes as v1.6 leaves them (objects.md 12)."""
        ids = {member["name"]: {MEMBER_ID: str(member["member_id"])} for member in self._pd("members")["members"]}
        for store in (each["store"] for each in self._pd("stores")["stores"]):
            ids[store["address"].partition(".")[0]] = {STORE_ID: str(store["id"])}
        for pod in self.world.admin.list_page(PODS, self.namespace).items:
            name = pod.metadata.name
            labels = {CLUSTER_ID: cluster_id} | ids.get(name, {})
            self.world.admin.patch(PODS, name, self.namespace, {"metadata": {"labels": labels}})
            for volume in pod.decode()["spec"]["volumes"]:
                if claim := volume.get("persistentVolumeClaim"):
                    self._label_claim(claim["claimName"], name, labels)

    def _label_claim(self, name: str, pod: str, labels: dict[str, str]) -> None:
        mark = {POD_NAME: pod}
        marks = {"labels": labels | mark, "annotations": mark}
        claim = self.world.admin.patch(PERSISTENT_VOLUME_CLAIMS, name, self.namespace, {"metadata": marks}).decode()
        carried = {key: value for key, value in claim["metadata"]["labels"].items() if key != POD_NAME}
        volume_marks = {"labels": carried | {"app.kubernetes.io/namespace": self.namespace}, "annotations": mark}
        patch = {"metadata": volume_marks, "spec": {"persistentVolumeReclaimPolicy": "Retain"}}
        self.world.admin.patch(PERSISTENT_VOLUMES, claim["spec"]["volumeName"], "", patch)

    def _pd(self, path: str) -> Json:
        transport = self.world.world.data_plane_transport(Origin(self.namespace))
        answer: Json = get(transport, f"http://{self.name}-pd:2379/pd/api/v1/{path}")
        return answer

    def discovery_pod(self) -> str:
        """The name of the pod that the operator's own image runs in."""
        pods = self.world.admin.list_page(PODS, self.namespace).items
        return next(pod.metadata.name for pod in pods if "discovery" in pod.metadata.name)

    def pods(self) -> dict[str, str]:
        """UIDs by name."""
        pods = self.world.admin.list_page(PODS, self.namespace).items
        return {pod.metadata.name: pod.metadata.uid for pod in pods if "discovery" not in pod.metadata.name}


def storage_classes(items: list[Json]) -> set[str]:
    """The classes that volumes ask for by name."""
    claims = (claim for item in items for claim in item.get("spec", {}).get("volumeClaimTemplates") or ())
    return {claim["spec"]["storageClassName"] for claim in claims if "storageClassName" in claim["spec"]}


def as_v16_left_it(recorded: Json, ours: Json, uid: str) -> Json:
    """A recorded object with what the recording leaves out: the owner's UID, v1.6's record of what it applied, and a
    script in its manner."""
    tree: Json = json.loads(json.dumps(recorded))
    meta = tree["metadata"]
    for reference in meta["ownerReferences"]:
        reference["uid"] = uid
    annotations: dict[str, str] = meta.setdefault("annotations", {})
    if tree["kind"] == "StatefulSet":
        for container in tree["spec"]["template"]["spec"].get("initContainers") or ():
            container["command"] = [_INIT if word == "<script>" else word for word in container["command"]]
    if tree["kind"] in ("StatefulSet", "Service"):
        annotations[LAST_APPLIED] = json.dumps(as_applied(tree, ours))
    if tree["kind"] == "ConfigMap" and "startup-script" in tree["data"]:
        tree["data"]["startup-script"] = script(meta["labels"]["app.kubernetes.io/component"])
    if tree["kind"] == "Deployment":
        annotations[LAST_APPLIED_POD_TEMPLATE] = json.dumps(as_applied(recorded, ours)["template"]["spec"])
    return tree


@pytest.mark.parametrize(
    ("recording", "beside", "told"),
    [
        ("basic", [], []),
        # v1.6's record does not tell that the Service's annotation is the user's; ours does, to end with the wish
        # PD places by location, and the sandbox's servers have not heard theirs from v1.6
        ("gcp", ["patch services basic-tidb"], ["label", "label", "label", "labels", "labels"]),
        ("basic-storagevolumes", [], []),
        ("tiflash", [], []),
    ],
)
def test_3_5_taking_over_writes_discovery_and_the_status_only(
    recording: str, beside: list[str], told: list[str], clock: FakeClock
) -> None:
    taken = TakenOver(recording, clock)
    pods, world, name = taken.pods(), taken.world, taken.name
    world.run(45.0)
    world.stop()

    assert [
        # ours may read less, and runs our own image
        f"patch roles.rbac.authorization.k8s.io {name}-discovery",
        f"patch deployments.apps {name}-discovery",
        *beside,
        f"patch tidbclusters.pingcap.com/status {name}",
        # the new pod of Discovery, labelled as all pods are
        f"patch pods {taken.discovery_pod()}",
    ] == world.writes()
    assert told == [request.url.rpartition("/")[2] for request in world.operator.dataplane.writes()]
    assert pods == taken.pods()
    conditions = world.admin.get(TIDB_CLUSTERS, name, taken.namespace).decode()["status"]["conditions"]
    assert [("Ready", "Ready"), ("Progressing", "Done")] == [(each["type"], each["reason"]) for each in conditions]
