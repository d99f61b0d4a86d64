"""The order in which the scheduler prefers nodes that fit a pod."""

from collections.abc import Sequence

from kube.objects import Json
from sandbox.placement import Preference, Situation, place

_READY = [{"type": "Ready", "status": "True"}]
_IMAGE = "pingcap/tidb:v8.5.2"


def node(name: str, zone: str = "a", images: Sequence[str] = ()) -> Json:
    status = {"conditions": _READY, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    status["images"] = [{"names": [f"docker.io/{image}"], "sizeBytes": 1} for image in images]
    return {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}, "spec": {}, "status": status}


def pod(on: str = "", owner: str = "tidb", uid: str = "now") -> Json:
    spec: Json = {"containers": [{"name": "tidb", "image": _IMAGE}]} | ({"nodeName": on} if on else {})
    owners = [{"kind": "StatefulSet", "name": owner, "uid": f"{owner} {uid}"}]
    return {"metadata": {"namespace": "a", "name": "pod", "ownerReferences": owners}, "spec": spec}


def chosen(nodes: Sequence[Json], *pods: Json, former: str = "") -> str:
    return place(pod(), (), Situation(nodes, pods), preference=Preference(former=former)).node


def test_a_workload_spreads_over_nodes_and_zones() -> None:
    nodes = [node("n0"), node("n1"), node("n2", "b")]
    assert "n2" == chosen(nodes, pod("n0"), pod("n2", "others"))
    assert "n1" == chosen(nodes, pod("n0"), pod("n2"))


def test_the_pods_of_a_recreated_stateful_set_are_siblings() -> None:
    assert "n1" == chosen([node("n0", images=[_IMAGE]), node("n1")], pod("n0", uid="before"))


def test_a_node_with_the_image_comes_before_an_emptier_one() -> None:
    assert "n1" == chosen([node("n0"), node("n1", images=[_IMAGE])], pod("n1", "others"))
    assert "n0" == chosen([node("n0"), node("n1", "a", [_IMAGE])], pod("n1"))


def test_a_former_node_comes_before_others_with_as_few_siblings() -> None:
    nodes = [node("n0", images=[_IMAGE]), node("n1")]
    assert "n1" == chosen(nodes, former="n1")
    assert "n0" == chosen(nodes, pod("n1"), former="n1")
