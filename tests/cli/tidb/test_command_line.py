"""The frame: flags, help, unknown commands, output formats."""

import subprocess
import sys
from collections.abc import Mapping

import msgspec
import pytest
import yaml
from rich.text import Text

from cli.tidb.main import COMMANDS, main, parse
from cli.tidb.output import Columns, Output, output_for, rendered

HOME: Mapping[str, str] = {}


@pytest.mark.parametrize("where", ["before", "after"])
def test_accepts_shared_flags_before_and_after_the_command(where: str) -> None:
    flags = ["-n", "shop", "--context", "east", "-o", "yaml", "--kubeconfig", "k", "--no-color"]
    command = ["pause", "basic"]
    _, given, _ = parse([*flags, *command] if where == "before" else [*command, *flags])
    expected = ("shop", "east", "yaml", "k", True)
    assert expected == (given.namespace, given.context, given.output, given.kubeconfig, given.no_color)


def test_options_default_to_empty_values_and_a_table() -> None:
    _, given, _ = parse(["pause", "basic"])
    expected = ("", "", "table", "", False)
    assert expected == (given.namespace, given.context, given.output, given.kubeconfig, given.no_color)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main([command, "--help"])
    told = capsys.readouterr().out
    assert told.startswith(f"usage: kubectl tidb {command}")
    assert "--kubeconfig" in told


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--help"])
    told = capsys.readouterr().out
    assert all(f"    {name} " in told and each.summary[:30] in told for name, each in COMMANDS.items())


@pytest.mark.parametrize(
    "typed",
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        ([], "COMMAND"),
        (["pause"], "CLUSTER"),
        (["pause", "basic", "--frob"], "unrecognized arguments: --frob"),
        (["pause", "basic", "-o", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_exits_with_2_for_a_wrong_command_line(
    typed: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, told = typed
    assert 2 == main(arguments)
    assert told in capsys.readouterr().err


def test_a_page_fits_its_width_and_has_no_trailing_blanks() -> None:
    table = Columns("NAME", "WHY")
    table.add("a-very-long-name-of-a-pod-0", "because " * 20)
    table.add("b", "[bold]no markup[/bold]")
    lines = rendered([table], 60).splitlines()
    assert all(len(line) <= 60 and line == line.rstrip() for line in lines)
    assert "[bold]no markup[/bold]" in lines[-1]


def test_colours_appear_only_on_request() -> None:
    assert "\x1b[32m" in rendered([Text("fine", "green")], colours=True)
    assert "fine\n" == rendered([Text("fine", "green")])


def test_no_color_switches_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert output_for("table", {}, no_color=False).colours
    assert not output_for("table", {"NO_COLOR": "1"}, no_color=False).colours
    assert not output_for("table", {}, no_color=True).colours


def test_documents_are_valid_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"clusters": [{"name": "ä", "ready": True, "since": None}]}
    Output("json").show(document, list)
    assert document == msgspec.json.decode(capsys.readouterr().out)
    Output("yaml").show(document, list)
    assert document == yaml.safe_load(capsys.readouterr().out)


def test_status_imports_no_slow_module() -> None:
    """The operator's own context, SQL and cryptography take longer to import than `status` takes to answer."""
    code = "import sys; from cli.tidb.main import parse; parse(['status']); print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    heavy = {
        "structlog",
        "pygments",
        "pymysql",
        "cryptography",
        "tenacity",
        "requests",
        "kubernetes",
        "member.context",
        "dataplane.clients",
    }
    assert set() == {*imported.stdout.split()} & {*heavy, "cli.doctor.command", "cli.tidb.certificates"}
