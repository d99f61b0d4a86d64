"""`kubectl tidb drill`: a loss in a running cluster, rehearsed on its twin."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.drill import DOES_NOT, HOLDS
from cli.failures import Failure
from cli.plan import FAILED, PlanFailed
from kube.client import Client
from sandbox.waiting_clock import WaitingClock
from tests.cli.test_drill import cluster
from tests.cli.tidb.typing_commands import ReadOnly, Refusing, Terminal
from tests.operator_world import OperatorWorld

DOCUMENT = Path(__file__).parents[3] / "docs" / "plan.md"


@pytest.fixture(scope="module")
def spare() -> Iterator[OperatorWorld]:
    """A cluster of 3/3/2, Ready; a test leaves it as it was."""
    world = OperatorWorld()
    world.apply(cluster())
    world.run_until_ready()
    yield world
    world.stop()


@pytest.mark.slow
def test_a_drill_reads_with_the_rights_of_the_user_and_writes_nothing(
    spare: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    user = ReadOnly(spare.world.transport())
    before = spare.world.server.storage.version
    terminal = Terminal(Client(user), capsys, WaitingClock(spare.clock, spare.run))
    shown = terminal.type("drill", "basic", "--fail", "node/node-1", "--for", "2m", code=HOLDS)
    assert before == spare.world.server.storage.version
    assert {"pods", "nodes", "statefulsets", "persistentvolumes"} <= user.read
    assert shown in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_loss_during_a_change_of_settings_stops_what_has_no_spare_then(
    spare: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(spare.admin, capsys, WaitingClock(spare.clock, spare.run))
    change = ("--set", "spec.tidb.config={log: {level: warn}}", "--every-moment", "--for", "90s")
    found = terminal.document("drill", "basic", *change, "--fail", "pod/basic-tidb-0", code=DOES_NOT)
    assert "restart of basic-tidb-1" == found["worst"]["step"]
    worst = next(each for each in found["moments"] if each["step"] == found["worst"]["step"])
    assert ["tidb"] == [each["component"] for each in worst["clusters"][0]["stops"]]


def test_a_drill_without_a_change_has_no_moments(terminal: Terminal) -> None:
    with pytest.raises(Failure, match=r"--at 5s: is a moment of a change, and nothing changes; .* -f, --set or"):
        terminal.type("drill", "basic", "--fail", "operator", "--at", "5s")


def test_a_cluster_that_cannot_be_read_has_no_drill(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(Client(Refusing(running.world.transport(), "pods")), capsys)
    with pytest.raises(PlanFailed, match=r"tidbcluster/basic cannot be read: .*pods") as why:
        terminal.type("drill", "basic", "--fail", "operator")
    assert FAILED == why.value.code
