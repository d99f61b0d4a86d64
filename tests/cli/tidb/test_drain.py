"""`drain`: the plan, and its execution by the operator (scheduler-deployment.md 12.11)."""

from collections.abc import Callable, Iterator

import pytest

from cli.failures import Failure
from cli.tidb.drain.plan import Candidate, claims_of, local_claims, steps_of
from kube.objects import Json
from kube.resources import NODES, PODS, STORAGE_CLASSES
from sandbox.controllers.volumes import standard_storage_class
from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.objects import cluster, dm_cluster, pod
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import NAMESPACE, OperatorWorld, sample

SPEC: Json = {
    "version": "v8.5.2",
    "pd": {"replicas": 3, "requests": {"storage": "1Gi"}},
    "tikv": {"replicas": 3, "requests": {"storage": "1Gi"}},
    "tidb": {"replicas": 1},
    "ticdc": {"replicas": 1},
}


@pytest.mark.rule("scheduler-deployment-12.11")
def test_pods_with_network_volumes_are_restarted_component_by_component() -> None:
    shop = cluster(spec=SPEC)
    pods = (("ticdc", 0), ("tikv", 1), ("tidb", 0), ("tikv", 0), ("pd", 2))
    steps = steps_of(Candidate(pod(name, f"shop-{name}-{at}"), shop) for name, at in pods)
    assert ["shop-pd-2", "shop-tikv-0", "shop-tikv-1", "shop-tidb-0", "shop-ticdc-0"] == [each.pod for each in steps]
    assert [
        "tidb.pingcap.com/pd-transfer-leader=delete-pod",
        "tidb.pingcap.com/evict-leader=delete-pod",
        "tidb.pingcap.com/evict-leader=delete-pod",
        "tidb.pingcap.com/tidb-graceful-shutdown=delete-pod",
        "",
    ] == [each.command for each in steps]
    assert ["", "", "", "the only one: clients wait until it is back"] == [each.note for each in steps[:4]]
    assert ("stays", "kubectl drain takes it: nothing of it moves away before") == (steps[4].how, steps[4].note)


@pytest.mark.rule("scheduler-deployment-12.11")
def test_pods_with_local_volumes_move_their_data_first_or_stay() -> None:
    steps = steps_of(
        [
            Candidate(pod("tikv", "shop-tikv-0"), cluster(spec=SPEC), ("tikv-shop-tikv-0",)),
            Candidate(pod("dm-master", "sync-dm-master-0"), dm_cluster({}), ("dm-master-sync-dm-master-0",)),
        ]
    )
    assert [("replace volumes", "tidb.pingcap.com/replace-volume=true"), ("stays", "")] == [
        (each.how, each.command) for each in steps
    ]
    assert "its data move away first; then it gets new volumes in place of tikv-shop-tikv-0" == steps[0].note
    assert "and the operator moves none of dm-master" in steps[1].note


@pytest.mark.rule("scheduler-deployment-12.4")
def test_pods_of_a_paused_cluster_stay() -> None:
    paused = cluster(spec=SPEC | {"paused": True})
    (step,) = steps_of([Candidate(pod("pd", "shop-pd-0"), paused)])
    assert ("stays", "the cluster is paused: kubectl tidb resume tc/shop") == (step.how, step.note)


@pytest.mark.parametrize(
    "volume",
    [
        ({"csi": {}}, False),
        ({"local": {"path": "/mnt"}}, True),
        ({"hostPath": {"path": "/mnt"}}, True),
        (
            {
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname"}]}]}
                }
            },
            True,
        ),
        (
            {
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.kubernetes.io/zone"}]}]}
                }
            },
            False,
        ),
    ],
)
def test_a_volume_is_local_when_no_other_node_has_it(volume: tuple[Json, bool]) -> None:
    spec, is_local = volume
    mounting = {"spec": {"volumes": [{"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "data"}}]}}
    assert ["data"] == list(claims_of(mounting))
    assert (["data"] if is_local else []) == list(local_claims(mounting, {"data": {"spec": spec}}))


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    """PD with volumes on the network, four TiKV and two TiFlash with local ones, a TiDB and a TiProxy."""
    world = OperatorWorld()
    network = standard_storage_class() | {"metadata": {"name": "network"}, "volumeBindingMode": "Immediate"}
    world.admin.create(STORAGE_CLASSES, network)
    tree = sample("basic")
    tree["spec"]["pd"] |= {"replicas": 3, "storageClassName": "network"}
    tree["spec"]["tikv"]["replicas"] = 4
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    tree["spec"]["tiflash"] = {"baseImage": "pingcap/tiflash", "replicas": 2, "storageClaims": [claim]}
    tree["spec"]["tiproxy"] = {"replicas": 1, "version": "v1.3.0"}
    world.apply(tree)
    world.run_until_ready()
    yield world
    world.stop()


def on(world: OperatorWorld, node: str) -> list[str]:
    pods = [each for each in world.every(PODS) if each["spec"].get("nodeName") == node]
    return [each["metadata"]["name"] for each in pods if "discovery" not in each["metadata"]["name"]]


def node_of(world: OperatorWorld, pod: str) -> str:
    found: str = world.get(PODS, pod)["spec"]["nodeName"]
    return found


def pods(world: OperatorWorld) -> dict[str, str]:
    """UIDs by name."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.every(PODS)}


def is_cordoned(world: OperatorWorld, node: str) -> bool:
    return bool(world.admin.get(NODES, node).decode()["spec"].get("unschedulable"))


@pytest.mark.slow
def test_without_yes_it_only_shows_the_plan(world: OperatorWorld, terminal: Terminal) -> None:
    shown = terminal.type("drain", "node-1")
    assert all(name in shown for name in on(world, "node-1"))
    assert "Nothing was done. With --yes the node is cordoned" in shown
    assert not is_cordoned(world, "node-1")
    document = terminal.document("drain", "node-1")
    assert (False, len(on(world, "node-1"))) == (document["begun"], len(document["steps"]))


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-12.11")
def test_undo_reverts_a_drain_that_has_begun(world: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing is moved while another pod is."""
    world.run_until_ready()
    node, before = node_of(world, "basic-tikv-3"), pods(world)
    told = {"metadata": {"annotations": {"tidb.pingcap.com/replace-volume": "true"}}}
    world.admin.patch(PODS, "basic-tikv-3", NAMESPACE, told)
    # time passes, and the operator does nothing
    terminal = Terminal(world.admin, capsys, WaitingClock(world.clock, world.clock.step))
    with pytest.raises(Failure, match="after 2 s: waiting for basic-tikv-3 to be moved"):
        terminal.type("drain", node, "--yes", "--timeout", "2")
    assert is_cordoned(world, node)
    capsys.readouterr()
    shown = terminal.type("drain", node, "--undo").splitlines()
    assert ["pod default/basic-tikv-3 stays", f"pods may start on {node} again"] == shown
    assert not is_cordoned(world, node)
    world.run_until_ready()
    assert before == pods(world)
    assert {"takenBack": [], "begun": False, "steps": [], "node": node} == terminal.document("drain", node, "--undo")


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-12.11")
def test_a_drained_node_keeps_only_pods_that_are_left_to_kubectl(world: OperatorWorld, terminal: Terminal) -> None:
    node = node_of(world, "basic-tiflash-0")
    begun = on(world, node)
    stay = [name for name in begun if name.startswith("basic-tiproxy")]
    shown = terminal.type("drain", node, "--yes", "--timeout", "60", code=1 if stay else 0)
    assert is_cordoned(world, node)
    assert stay == on(world, node)
    assert all(f"default/{name}" in shown for name in begun if name not in stay)
    assert "runs on node-" in shown
    terminal.type("drain", node, "--undo")
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-12.11")
def test_reports_a_node_lost_during_a_drain_and_drains_it_after_its_return(
    world: OperatorWorld, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    world.run_until_ready()
    node = node_of(world, "basic-tikv-0")
    heals: list[Callable[[], None]] = []

    def lose(seconds: float) -> None:
        if not heals:
            heals.append(world.world.faults.node_gone(node))
        world.run(seconds)

    with pytest.raises(Failure, match=r"is not done after 20 s: .*the operation continues"):
        Terminal(world.admin, capsys, WaitingClock(world.clock, lose)).type("drain", node, "--yes", "--timeout", "20")
    heals[0]()
    terminal.type("drain", node, "--yes", "--timeout", "120", code=int("basic-tiproxy-0" in on(world, node)))
    assert {"basic-tiproxy-0"} >= set(on(world, node))
    terminal.type("drain", node, "--undo")
    world.run_until_ready()


def test_an_unknown_node_is_reported_with_the_existing_ones(terminal: Terminal) -> None:
    with pytest.raises(Failure, match="no node nowhere; there is node-0, node-1, node-2"):
        terminal.type("drain", "nowhere")
