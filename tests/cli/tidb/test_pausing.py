"""`pause` and `resume` (scheduler-deployment.md 12.4)."""

import pytest

from cli.failures import Failure
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import OperatorWorld


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
