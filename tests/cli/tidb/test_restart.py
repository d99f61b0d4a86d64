"""`restart`: of a component and of one pod (scheduler-deployment.md 12.5)."""

from collections.abc import Iterator

import pytest

from cli.failures import Failure
from cli.tidb.pod_commands import last_word, news_of
from kube.client import Client
from kube.objects import Json
from kube.resources import PODS
from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.objects import cluster
from tests.cli.tidb.typing_commands import Listing, Terminal
from tests.operator_world import OperatorWorld, sample

RESTARTED_AT = "tidb.pingcap.com/restartedAt"


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    """Two TiDB, a TiKV, a PD and a TiProxy."""
    world = OperatorWorld()
    tree = sample("basic")
    tree["spec"]["tidb"]["replicas"] = 2
    tree["spec"]["tiproxy"] = {"replicas": 1, "version": "v1.3.0"}
    world.apply(tree)
    world.run_until_ready()
    yield world
    world.stop()


def uids(world: OperatorWorld, component: str) -> set[str]:
    pods = [each["metadata"] for each in world.every(PODS)]
    return {each["uid"] for each in pods if each["labels"].get("app.kubernetes.io/component") == component}


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-12.5")
def test_a_component_is_restarted_pod_by_pod_while_progress_is_shown(world: OperatorWorld, terminal: Terminal) -> None:
    before = uids(world, "tidb")
    shown = terminal.type("restart", "basic", "tidb", "--wait").splitlines()
    assert "tidb of tidbcluster/basic is being restarted, pod by pod" == shown[0]
    assert any(line.startswith("basic tidb  tidb      1/2 ready   RollingUpdate: ") for line in shown)
    assert shown[-1].startswith("basic tidb  tidb      2/2 ready ")
    assert not before & uids(world, "tidb")
    assert 2 == len(uids(world, "tidb"))


@pytest.mark.slow
@pytest.mark.parametrize("pod", ["basic-tikv-0", "basic-pd-0", "basic-tidb-1"])
@pytest.mark.rule("scheduler-deployment-12.5")
def test_restarts_one_pod_through_an_annotation_for_the_operator(
    world: OperatorWorld, terminal: Terminal, pod: str
) -> None:
    world.run_until_ready()
    before = world.get(PODS, pod)["metadata"]["uid"]
    shown = terminal.type("restart", "tc/basic", pod, "--wait").splitlines()
    assert f"pod/{pod} is being restarted" in shown
    assert shown[-1].endswith("1/1 ready   restarted")
    assert before != world.get(PODS, pod)["metadata"]["uid"]


def test_refuses_a_pod_that_cannot_restart_alone_and_names_the_way_out(terminal: Terminal) -> None:
    with pytest.raises(Failure, match="no single pod of tiproxy; restart all of them: kubectl tidb restart basic"):
        terminal.type("restart", "basic", "basic-tiproxy-0")


def test_refuses_an_unknown_component_and_names_the_existing_ones(terminal: Terminal) -> None:
    with pytest.raises(Failure, match="nor a pod tiflash; it has pd, tiproxy, tikv, tidb, basic-pd-0"):
        terminal.type("restart", "basic", "tiflash")


def test_a_timeout_names_what_the_command_waited_for(world: OperatorWorld, terminal: Terminal) -> None:
    terminal.type("pause", "basic")
    with pytest.raises(Failure, match=r"basic tidb is not done after 3 s: Paused: .*the operation continues"):
        terminal.type("restart", "basic", "tidb", "--wait", "--timeout", "3")


@pytest.mark.rule("scheduler-deployment-12.5")
def test_keeps_the_users_annotations(world: OperatorWorld, terminal: Terminal) -> None:
    world.change(paused=True, tidb={"annotations": {"team": "shop", RESTARTED_AT: "long ago"}})
    document = terminal.document("restart", "basic", "tidb")
    annotations = world.cluster()["spec"]["tidb"]["annotations"]
    assert {"team": "shop", RESTARTED_AT: document["restartedAt"]} == annotations


def test_an_interrupted_wait_says_that_the_restart_continues(
    world: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    world.change(paused=True)
    terminal = Terminal(world.admin, capsys, WaitingClock(world.clock, interrupt))
    with pytest.raises(KeyboardInterrupt):
        terminal.type("restart", "basic", "tidb", "--wait")
    assert "no longer waiting for basic tidb; the operation continues\n" == capsys.readouterr().err


def test_shows_the_latest_event_that_names_the_pod() -> None:
    def event(time: str, message: str) -> Json:
        return {"metadata": {"name": time}, "lastTimestamp": time, "reason": "R", "message": message}

    events = [
        event("2026-01-01T00:00:01Z", "waiting for shop-pd-1: leader"),
        event("2026-01-01T00:00:02Z", "restarting pod shop-pd-1"),
        event("2026-01-01T00:00:03Z", "restarting pod shop-pd-11"),
    ]
    client, shop = Client(Listing(events=("Event", events))), cluster()
    assert ("2026-01-01T00:00:02Z", "R: restarting pod shop-pd-1") == last_word(client, shop, "shop-pd-1")
    assert ("", "") == last_word(client, shop, "shop-pd")
    assert "R: restarting pod shop-pd-1" == news_of(client, shop, "shop-pd-1", ("", ""))
    known = last_word(client, shop, "shop-pd-1")
    assert "the operator has the request" == news_of(client, shop, "shop-pd-1", known)
