"""Locations of stores and servers (lifecycle.md 7.9)."""

import json
from collections.abc import Iterator

import pytest

from apis import toml
from kube.objects import Json
from kube.resources import PODS
from meta.locations import location, with_zone
from sandbox.kubelet.nodes import NodeSpec
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_NODE = {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a", "rack": "r7", "host": ""}


@pytest.mark.rule("lifecycle-7.9")
def test_short_names_stand_for_the_labels_of_kubernetes() -> None:
    assert {"zone": "a", "rack": "r7", "host": "n1"} == location(_NODE, ("region", "zone", "rack", "host"))
    assert {"topology.kubernetes.io/zone": "a"} == location(_NODE, ("topology.kubernetes.io/zone",))
    assert {"zone": "mine"} == location(_NODE | {"zone": "mine"}, ("zone",))


@pytest.mark.rule("lifecycle-7.9")
def test_a_server_gets_its_zone_under_the_short_name() -> None:
    wanted = {"topology.kubernetes.io/zone": "a", "host": "n1", "zone": "a"}
    assert wanted == with_zone(_NODE, ("topology.kubernetes.io/zone", "host"))
    assert {} == with_zone(_NODE, ("host",))
    assert {} == with_zone({"kubernetes.io/hostname": "n1"}, ("zone", "host"))


def _cluster(**tikv: object) -> Json:
    cluster = sample("basic")
    cluster["spec"]["pd"]["config"] = '[replication]\nlocation-labels = ["zone", "host"]\n'
    cluster["spec"]["tikv"] |= {"replicas": 3, **tikv}
    return cluster


@pytest.fixture
def world() -> Iterator[OperatorWorld]:
    nodes = [NodeSpec(f"node-{n}", f"192.168.0.{n}", f"zone-{n}", labels={"disk": f"ssd-{n}"}) for n in range(3)]
    world = OperatorWorld(nodes=nodes)
    yield world
    world.stop()


def _stores(world: OperatorWorld) -> dict[str, dict[str, str]]:
    """The labels of the stores, by pod."""
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return {store.address.partition(".")[0]: store.labels for store in pd.stores.all()}


def _nodes(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.every(PODS)}


def _told(world: OperatorWorld) -> list[str]:
    """The servers that the operator has sent labels to since `forget`."""
    requests = world.operator.dataplane.requests
    return sorted(request.url.partition("//")[2] for request in requests if not request.is_read)


_WORDS = {"zone": "zone-", "host": "node-", "disk": "ssd-"}


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.9")
def test_sends_stores_and_servers_their_location_once(world: OperatorWorld) -> None:
    world.apply(_cluster(storeLabels=["disk"]))
    world.run_until_ready()
    world.run(60)

    number = {pod: node.removeprefix("node-") for pod, node in _nodes(world).items()}
    pods = [f"basic-tikv-{n}" for n in range(3)]
    assert {pod: {key: value + number[pod] for key, value in _WORDS.items()} for pod in pods} == _stores(world)
    world.forget()
    world.run(120)
    assert [] == _told(world)


@pytest.mark.slow
def test_a_new_operator_sends_no_labels_that_servers_have(world: OperatorWorld) -> None:
    world.apply(_cluster())
    world.run_until_ready()
    world.run(60)
    world.forget()
    world.restart()
    world.run(60)
    assert [] == _told(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.9")
def test_a_restarted_server_gets_its_location_again(world: OperatorWorld) -> None:
    world.apply(_cluster())
    world.run_until_ready()
    world.run(60)
    world.forget()

    _stores(world)["basic-tikv-1"].clear()
    world.run(60)
    assert 1 == len(_told(world))
    assert {"zone", "host"} == _stores(world)["basic-tikv-1"].keys()

    world.forget()
    world.world.data_plane.crash(NAMESPACE, "basic-tidb-0")
    world.run(60)
    assert ["basic-tidb-0.basic-tidb-peer.default:10080/labels"] == _told(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.9")
def test_a_server_that_refuses_is_not_retried_in_every_reconcile(world: OperatorWorld) -> None:
    cluster = _cluster(storeLabels=["disk"])
    cluster["spec"]["pd"]["config"] += "strictly-match-label = true\n"
    world.apply(cluster)
    world.run_until_ready()
    world.run(60)

    assert 3 == len(world.events("FailedSetStoreLabels"))
    world.forget()
    world.run(120)
    assert [] == _told(world)
    world.run(300)
    assert 3 == len(_told(world))


@pytest.mark.rule("lifecycle-7.9")
def test_sends_nothing_without_nodes_or_while_paused(world: OperatorWorld) -> None:
    world.apply(_cluster() | {"spec": _cluster()["spec"] | {"paused": True}})
    world.run(60)
    assert [] == _told(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.9")
def test_stores_of_tiflash_get_the_location_labels_of_pd_alone(world: OperatorWorld) -> None:
    cluster = _cluster(storeLabels=["disk"])
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    cluster["spec"]["tiflash"] = {"baseImage": "pingcap/tiflash", "replicas": 1, "storageClaims": [claim]}
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.run(40.0)
    labels = _stores(world)["basic-tiflash-0"]
    assert ({"engine", "zone", "host"}, "tiflash") == (set(labels), labels["engine"])
    assert "disk" in _stores(world)["basic-tikv-0"]


_LABELS = {"team": "a", "zone": "mine"}


@pytest.mark.slow
@pytest.mark.rule("SL-1", "SL-2")
def test_servers_get_the_labels_of_the_spec_without_a_restart(world: OperatorWorld) -> None:
    cluster = _cluster()
    cluster["spec"]["tiproxy"] = {"replicas": 1, "version": "v1.3.0"}
    world.apply(cluster)
    world.run_until_ready()
    world.run(60)
    pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}
    world.forget()
    world.change(tidb={"serverLabels": _LABELS}, tiproxy={"serverLabels": _LABELS})
    world.run(60)
    servers = sorted(name for name in pods if "-tidb-" in name or "-tiproxy-" in name)
    assert servers == sorted(each.partition(".")[0] for each in _told(world))
    number = {pod: node.removeprefix("node-") for pod, node in _nodes(world).items()}
    sent = _sent(world)
    assert {pod: {"team": "a", "zone": f"zone-{number[pod]}", "host": f"node-{number[pod]}"} for pod in servers} == sent
    assert pods == {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}
    world.forget()
    world.run(120)
    assert [] == _told(world)


@pytest.mark.slow
@pytest.mark.rule("SL-2")
def test_servers_get_the_labels_of_the_spec_without_a_zone_in_pd(world: OperatorWorld) -> None:
    """v1.7 sends nothing then."""
    cluster = sample("basic")
    cluster["spec"]["tidb"]["serverLabels"] = _LABELS
    world.apply(cluster)
    world.run_until_ready()
    world.run(60)
    assert {_LABELS["team"]} == {labels["team"] for labels in _sent(world).values()}
    assert {_LABELS["zone"]} == {labels["zone"] for labels in _sent(world).values()}


def _sent(world: OperatorWorld) -> dict[str, dict[str, str]]:
    """The labels that servers were sent since `forget`, by pod."""
    writes = [each for each in world.operator.dataplane.requests if not each.is_read and b"team" in (each.body or b"")]
    bodies = {each.url.partition("//")[2].partition(".")[0]: each.body or b"" for each in writes}
    return {pod: _labels_in(body) for pod, body in bodies.items()}


def _labels_in(body: bytes) -> dict[str, str]:
    """The labels in the request of TiDB (JSON) or TiProxy (a configuration)."""
    try:
        found: dict[str, str] = json.loads(body)
    except ValueError:
        found = toml.loads(body.decode())["labels"]
    return found
