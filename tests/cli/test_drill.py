"""`tidb-operator drill`: what a loss would do to the clusters of manifests."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.drill import DOES_NOT, HOLDS, run, verdict
from cli.failures import Failure
from cli.reasons.registry import REASONS
from kube.objects import Json
from rehearsal.damage import Damage, Spell
from tests.operator_world import sample

NODE_LOST = ("--fail", "node/node-1")


def cluster(**spec: Any) -> Json:
    """Three PDs and TiKVs, and two TiDBs, with failover, and other values of fields."""
    tree = sample("basic")
    for name, replicas in {"pd": 3, "tikv": 3, "tidb": 2}.items():
        tree["spec"][name]["replicas"] = replicas
        del tree["spec"][name]["maxFailoverCount"]
    tree["spec"] |= spec
    return tree


@pytest.fixture
def old(tmp_path: Path) -> str:
    """The manifest of the cluster."""
    return written(tmp_path / "old.yaml", cluster())


@pytest.fixture
def new(tmp_path: Path) -> str:
    """The manifest of the cluster with another configuration of TiDB."""
    tree = cluster()
    tree["spec"]["tidb"]["config"] = {"log": {"level": "warn"}}
    return written(tmp_path / "new.yaml", tree)


def written(path: Path, tree: Json) -> str:
    path.write_bytes(msgspec.json.encode(tree))
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> Json:
    """The document of a drill."""
    assert code == run([*arguments, "-o", "json"], {})
    found: Json = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_a_lost_node_shows_what_stops_and_when_the_operator_acts(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--from", old, *NODE_LOST, code=HOLDS)
    ((damage,),) = (each["clusters"] for each in found["moments"])
    assert [] == damage["stops"]
    lowest = {each["component"]: each["lowest"] for each in damage["lowest"]}
    assert {"pd": 2, "tikv": 2, "tidb": 1} == lowest
    hurt = {each["hurt"]: each["most"] for each in damage["regions"]}
    assert {"leaderless": 10, "without_spare": 30} == hurt
    substitutes = {each["pod"]: each["substitute"] for each in damage["failovers"]}
    assert {"pd", "tikv", "tidb"} == {each["component"] for each in damage["failovers"]}
    assert {"basic-pd-3", "basic-tikv-3", "basic-tidb-2"} == set(substitutes.values())
    recorded = {each["component"]: each["at"] for each in damage["failovers"]}
    # Kubernetes notices the node after 50 s, PD gives a store up after 30 minutes; then each waits for 5 minutes
    assert 350 <= recorded["pd"] < 360
    assert 350 <= recorded["tidb"] < 360
    assert 1800 + 60 <= recorded["tikv"] < 1800 + 300
    assert damage["whole"] > recorded["tikv"]
    assert ("PDFailedOver", REASONS["PDFailedOver"].you) == (damage["reason"], damage["wayOut"])


@pytest.mark.slow
def test_a_lost_zone_that_returns_in_time_needs_no_failover(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--from", old, "--fail", "zone/zone-0", "--for", "2m", code=HOLDS)
    ((damage,),) = (each["clusters"] for each in found["moments"])
    assert [] == damage["failovers"]
    assert 120 <= damage["whole"] < 240


@pytest.mark.slow
@pytest.mark.thorough
def test_a_loss_in_the_middle_of_a_roll_stops_what_the_loss_alone_does_not(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node of the only TiDB that serves while the other one restarts."""
    change = ("--from", old, "--to", new, "--for", "3m")
    found = document(capsys, *change, *NODE_LOST, "--during", "restart of basic-tidb-1", code=DOES_NOT)
    (moment,) = found["moments"]
    (damage,) = moment["clusters"]
    assert ("restart of basic-tidb-1", [("tidb", 0, 1)]) == (
        moment["step"],
        [(each["component"], each["ready"], each["needed"]) for each in damage["stops"]],
    )


@pytest.mark.slow
def test_every_moment_names_the_worst(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    lost = ("--from", old, "--to", new, "--for", "3m", "--fail", "pod/basic-tidb-0", "--every-moment")
    found = document(capsys, *lost, "--policy", "min-tidb=1", code=DOES_NOT)
    moments = ["", "restart of basic-tidb-1", "restart of basic-tidb-0"]
    assert moments == [each["step"] for each in found["moments"]]
    assert "restart of basic-tidb-1" == found["worst"]["step"]
    assert ["min-tidb=1 is broken by TidbCluster default/basic"] == [
        each.partition(" 1s ")[0].partition(" at ")[0] for each in found["broken"]
    ]


@pytest.mark.slow
def test_a_roll_continues_once_another_operator_has_the_lease(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ("--from", old, "--to", new, "--fail", "operator", "--at", "1s", "-o", "markdown")
    assert HOLDS == run([*lost], {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("**TidbCluster default/basic**, operator lost 1s after the change, during the restart")
    assert ["| At | Event |", "|---|---|"] == lines[2:4]
    assert lines[4].endswith("s | whole again |")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail", "node/nobody"), "--fail node/nobody: there is no such node; there are: node/node-0, node/node-1,"),
        (("--fail", "pod/x"), "--fail pod/x: there is no such pod; there are: pod/basic-pd-0, pod/basic-pd-1,"),
        ((*NODE_LOST, "--during", "x"), "--during 'x': the change has no such step; it has: restart of basic-tidb-1,"),
        pytest.param(
            (*NODE_LOST, "--at", "2h"),
            "--at 7200s: the change is over after .*; name a time up to then",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_what_does_not_exist_is_named_beside_what_does(
    old: str, new: str, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Failure, match=message):
        run(["--from", old, "--to", new, *arguments], {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail", "disk/x"), "'disk/x' cannot be lost; write one of node/NAME, zone/NAME, pod/NAME, operator"),
        (("--fail", "node/"), "'node/' cannot be lost; write one of"),
        ((*NODE_LOST, "--during", "x", "--at", "5s"), "argument --at: not allowed with argument --during"),
        ((*NODE_LOST, "--at", "soon"), "'soon' is not a duration; use, for example, 90s"),
        ((*NODE_LOST, "--for", "-5s"), "argument --for"),
    ],
)
def test_a_mistake_in_a_flag_names_it(
    old: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(["--from", old, *arguments], {})
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("moment", [("--at", "5s"), ("--during", "x"), ("--every-moment",)])
def test_a_moment_without_a_change_asks_for_one(old: str, moment: tuple[str, ...]) -> None:
    with pytest.raises(Failure, match=f"{' '.join(moment)}: is a moment of a change, and nothing changes; .* --to"):
        run(["--from", old, *NODE_LOST, *moment], {})


def test_regions_that_each_restart_hurts_are_named_once() -> None:
    spells = [Spell("without_spare", begins, 6.0, 30, 30) for begins in (26.0, 38.0)]
    said = verdict(Damage("done", "Done", "", 44.0, spells=spells))
    expected = "all components serve; 30 of 30 regions have no spare replica, for 6s, 2 times; whole again after 44s."
    assert expected == said
