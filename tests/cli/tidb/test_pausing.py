"""`pause` and `resume` (scheduler-deployment.md 12.4), `hibernate` and `wake` (lifecycle.md 12)."""

from collections.abc import Iterator

import pytest

from cli.failures import Failure
from kube.resources import DM_CLUSTERS, PERSISTENT_VOLUME_CLAIMS, PODS
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld, sample


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-12.4")
def test_pauses_and_resumes_a_cluster_and_repeating_changes_nothing(terminal: Terminal, running: OperatorWorld) -> None:
    assert terminal.type("pause", "basic").startswith("TidbCluster default/basic paused: nothing is changed")
    assert running.cluster()["spec"]["paused"] is True
    version = running.cluster()["metadata"]["resourceVersion"]
    identity = {"kind": "TidbCluster", "namespace": "default", "name": "basic"}
    assert {"clusters": [identity | {"paused": True, "changed": False}]} == terminal.document("pause", "tc/basic")
    assert version == running.cluster()["metadata"]["resourceVersion"]
    assert "TidbCluster default/basic resumed\n" == terminal.type("resume", "basic")
    assert running.cluster()["spec"]["paused"] is False
    assert "TidbCluster default/basic already resumed\n" == terminal.type("resume", "basic")


@pytest.fixture(scope="module")
def sleeper() -> Iterator[OperatorWorld]:
    """A cluster that a test may suspend."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world
    world.stop()


def pods(world: OperatorWorld) -> set[str]:
    found = {each["metadata"]["name"] for each in world.world.mirror.list(PODS, "default")}
    return {each for each in found if "discovery" not in each}


def volumes(world: OperatorWorld) -> set[str]:
    return {each["metadata"]["uid"] for each in world.world.mirror.list(PERSISTENT_VOLUME_CLAIMS, "default")}


@pytest.mark.slow
@pytest.mark.rule("12")
def test_a_cluster_that_hibernates_keeps_its_volumes_and_wakes_with_them(
    sleeper: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(sleeper.admin, capsys)
    capsys.readouterr()
    before = volumes(sleeper)
    assert terminal.type("hibernate", "basic").startswith("TidbCluster default/basic hibernates: its pods end")
    identity = {"kind": "TidbCluster", "namespace": "default", "name": "basic"}
    assert {"clusters": [identity | {"suspend": True, "changed": False}]} == terminal.document("hibernate", "basic")
    sleeper.run_until(lambda: not pods(sleeper), 600)
    assert before == volumes(sleeper)
    capsys.readouterr()
    assert "TidbCluster default/basic wakes: its pods start\n" == terminal.type("wake", "basic")
    sleeper.run_until(lambda: len(pods(sleeper)) == 3, 600)
    assert before == volumes(sleeper)


@pytest.mark.slow
def test_what_a_component_or_a_pause_holds_back_is_named(
    sleeper: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeper.change(paused=True, tidb={"suspendAction": {"suspendStatefulSet": False}})
    terminal = Terminal(sleeper.admin, capsys)
    capsys.readouterr()
    assert " ".join(terminal.type("hibernate", "basic").split()).endswith(
        "; but spec.tidb.suspendAction says otherwise, and comes first; "
        "the cluster is paused: this waits for `kubectl tidb resume`"
    )


@pytest.mark.slow
def test_the_fields_of_dm_are_named_as_its_users_write_them(
    sleeper: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"replicas": 1, "suspendAction": {"suspendStatefulSet": False}}
    tree = {"apiVersion": DM_CLUSTERS.api_version, "kind": DM_CLUSTERS.kind, "metadata": {"name": "sync"}}
    sleeper.admin.create(DM_CLUSTERS, tree | {"spec": {"version": "v8.5.2", "master": own, "worker": own}}, "default")
    terminal = Terminal(sleeper.admin, capsys)
    capsys.readouterr()
    assert " ".join(terminal.type("hibernate", "sync").split()).endswith(
        "; but spec.master.suspendAction, spec.worker.suspendAction say otherwise, and come first"
    )


@pytest.mark.parametrize(
    "named",
    [
        ("shop", "no TidbCluster or DMCluster shop in namespace default; there is basic"),
        ("dc/basic", "no DMCluster basic in namespace default; there is basic"),
        ("pod/basic", "pod/basic: a cluster is named NAME, or tc/NAME or dc/NAME"),
    ],
)
def test_an_unknown_cluster_is_reported_with_the_existing_ones(terminal: Terminal, named: tuple[str, str]) -> None:
    name, told = named
    with pytest.raises(Failure) as failure:
        terminal.type("pause", name)
    assert told == str(failure.value)


def test_pauses_no_cluster_if_one_of_several_is_missing(terminal: Terminal, running: OperatorWorld) -> None:
    version = running.cluster()["metadata"]["resourceVersion"]
    with pytest.raises(Failure):
        terminal.type("pause", "basic", "shop")
    assert version == running.cluster()["metadata"]["resourceVersion"]
