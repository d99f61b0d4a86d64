"""`kubectl tidb plan`: a change of a running cluster, rehearsed on its twin."""

from pathlib import Path

import msgspec
import pytest

from cli.failures import Failure
from cli.plan import DOES_NOT, FAILED, GOES, PlanFailed
from cli.tidb import planning
from cli.tidb.main import parse
from kube.client import Client
from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.typing_commands import Refusing, Terminal
from tests.operator_world import OperatorWorld, sample

DOCUMENT = Path(__file__).parents[3] / "docs" / "plan.md"


@pytest.mark.slow
def test_the_guide_shows_what_the_command_prints(terminal: Terminal) -> None:
    shown = terminal.type("plan", "basic", "--set", "spec.tikv.replicas=3", code=GOES)
    assert shown in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_plan_changes_nothing_in_the_cluster(terminal: Terminal, running: OperatorWorld) -> None:
    before = running.world.server.storage.version
    terminal.type("plan", "tc/basic", "--version", "v8.5.3", code=DOES_NOT)
    assert before == running.world.server.storage.version


@pytest.mark.slow
def test_a_manifest_and_settings_make_one_change(terminal: Terminal, tmp_path: Path) -> None:
    tree = sample("basic")
    tree["spec"]["tidb"]["replicas"] = 2
    file = tmp_path / "new.yaml"
    file.write_bytes(msgspec.json.encode(tree))
    document = terminal.document("plan", "basic", "-f", str(file), "--set", "spec.pd.replicas=2", code=GOES)
    (cluster,) = document["clusters"]
    assert {"basic-pd-1": "starts", "basic-tidb-1": "starts"} == {each["pod"]: each["act"] for each in cluster["steps"]}
    # not the fields that the API server sets to their defaults; other tests pause and resume the shared cluster
    changed = [each for each in document["changes"] if each["field"] != "spec.paused"]
    changes = [(each["field"], each["before"], each["after"]) for each in changed]
    assert [("spec.pd.replicas", 1, 2), ("spec.tidb.replicas", 1, 2)] == sorted(changes)
    assert {"nodes": 3, "durations": {"default": "typical", "own": {}}} == document["assumed"]


@pytest.mark.slow
def test_a_policy_that_the_plan_breaks_fails_the_command(terminal: Terminal) -> None:
    change = ("plan", "basic", "--set", "spec.tidb.config={log: {level: warn}}")
    kept = terminal.document(*change, "--policy", "max-restarts=1", "--policy", "min-stores=1", code=DOES_NOT)
    assert [] == kept["broken"]
    shown = terminal.type(*change, "--policy", "max-restarts=0", "--policy", "min-tidb=1", code=DOES_NOT)
    assert "Policy max-restarts=0 is broken by TidbCluster default/basic: 1 pod restarts." in shown
    assert "Policy min-tidb=1 is broken by TidbCluster default/basic: TiDB has 0 Ready pods" in shown


@pytest.mark.slow
def test_markdown_is_for_pull_requests(terminal: Terminal) -> None:
    lines = terminal.type("plan", "basic", "--set", "spec.tidb.replicas=2", "-o", "markdown").splitlines()
    assert "**TidbCluster default/basic**: 1 pod starts in about" in lines[0]
    assert ["- spec.tidb.replicas: 1 → 2", "", "| At | Pod | Step |", "|---|---|---|"] == lines[2:6]
    assert lines[6].startswith("| 0s | basic-tidb-1 | starts, Ready after ")


@pytest.mark.parametrize("command", [("plan", "basic"), ("drill", "basic", "--fail=operator")])
def test_plans_and_drills_are_also_pages(command: tuple[str, ...]) -> None:
    _, given, _ = parse([*command, "-o", "html"])
    assert "html" == given.output


@pytest.mark.slow
def test_what_the_user_may_not_read_is_named(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    client = Client(Refusing(running.world.transport(), "nodes", "persistentvolumes"))
    terminal = Terminal(client, capsys, WaitingClock(running.clock, running.run))
    shown = terminal.type("plan", "basic", "--set", "spec.tidb.replicas=2")
    assert "Not in the twin: nodes (" in shown
    assert "Not in the twin: persistentvolumes (" in shown


def test_a_cluster_that_cannot_be_read_has_no_plan(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(Client(Refusing(running.world.transport(), "pods")), capsys)
    with pytest.raises(PlanFailed, match=r"tidbcluster/basic cannot be read: .*pods") as why:
        terminal.type("plan", "basic", "--version", "v8.5.3")
    assert FAILED == why.value.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing would change; name a manifest with -f"),
        (("--set", "tikv.replicas=5"), "write the path of a field and its value, e.g. spec.tikv.replicas=5"),
        (("--set", "spec.tikv.replicas"), "write the path of a field and its value"),
        (("--set", "spec.tikv.replicas.x=5"), "spec.tikv.replicas is no object; use -f"),
        (("--set", "spec.tikv.config={"), "{ is no value in YAML; quote it"),
        (("--set", "spec.tikv.replicass=5"), "spec.tikv.replicass: unknown field"),
    ],
)
def test_a_change_that_cannot_be_understood_says_how_to_write_it(
    terminal: Terminal, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Failure, match=message.replace(".", r"\.").replace("{", r"\{")):
        terminal.type("plan", "basic", *arguments)


def test_a_file_without_the_cluster_is_no_change_of_it(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_bytes(msgspec.json.encode(sample("basic") | {"metadata": {"name": "other"}}))
    with pytest.raises(Failure, match="has no TidbCluster default/basic"):
        terminal.type("plan", "basic", "-f", str(file))


def test_a_policy_that_is_unknown_is_named(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        terminal.type("plan", "basic", "--policy", "max-downtime=0")
    assert "'max-downtime=0' is no policy; write NAME=N with one of max-restarts, min-pd" in capsys.readouterr().err


def test_the_single_file_of_the_plugin_says_that_it_cannot_rehearse(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_REHEARSAL", "cli.absent")
    with pytest.raises(Failure, match="has no sandbox; install the package"):
        terminal.type("plan", "basic", "--version", "v8.5.3")
