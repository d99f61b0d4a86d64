"""The commands of docs/kubectl-tidb.md run in order and show the documented output."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.tidb.certificates import Certificate
from cli.tidb.drain.plan import Step
from cli.tidb.main import COMMANDS
from cli.tidb.status import report
from tests.e2e import operators, plugins, worlds
from tests.e2e.guides import KUBECTL, PATIENCE, Shell, anchor, commands, contains
from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import await_ready, create_cluster, sample

GUIDE = ROOT / "docs" / "kubectl-tidb.md"

_AGAIN = 1.0
"""Seconds after which a command is typed again: the plugin takes most of one of CPU to start."""

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_link_of_the_guide_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", GUIDE.read_text()):
        path, _, heading = target.partition("#")
        file = GUIDE.parent / path if path else GUIDE
        assert file.exists(), target
        headings = {anchor(each) for each in re.findall(r"^## (.+)$", file.read_text(), re.MULTILINE)}
        assert not heading or heading in headings, target


def test_nothing_in_the_guide_looks_like_code_and_is_not_run() -> None:
    fences = re.findall(r"^```(\w*)$", GUIDE.read_text(), re.MULTILINE)
    assert {"console", "yaml"} == set(fences[::2])


def test_every_command_has_its_place() -> None:
    text = GUIDE.read_text()
    titles = " ".join(re.findall(r"^## (.+)$", text, re.MULTILINE)).lower()
    assert not [name for name in COMMANDS if name not in titles]


def test_every_field_of_a_document_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)(?:\[\])?`", GUIDE.read_text().partition("## Documents")[2]))
    parts = (*(each for each in vars(report).values() if isinstance(each, type)), Certificate, Step)
    assert not {name for each in parts for name in getattr(each, "__struct_encode_fields__", ())} - explained


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_commands_of_the_guide_show_the_documented_output(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    for name, block in _files():
        (tmp_path / name).write_text(block)
    with (
        worlds.sandbox(tmp_path) as place,
        operators.running(place.new_log(), place.environment()) as operator,
    ):
        shell = Shell(place, tmp_path)
        shell.environment = plugins.with_path(shell.environment, plugins.install(tmp_path / "bin"))
        tree = sample("basic")
        for component, replicas in (("pd", 3), ("tikv", 4), ("tidb", 2)):
            tree["spec"][component]["replicas"] = replicas
        create_cluster(place.client, tree, "default")
        await_ready(place, operator, "basic", "default")
        for part in _BLOCK.finditer(GUIDE.read_text()):
            for command, expected in commands(part[2]) if part[1] == "console" else ():
                _type(shell, command, [line for line in expected if line])


def _type(shell: Shell, command: str, expected: list[str]) -> None:
    """Run a command; repeat a read-only one until it shows what the guide says."""
    shown = shell.run(command)
    if command.split()[2] not in ("status", "doctor", "diff"):
        assert contains(shown, expected), f"{command}\n{shown}"
        return

    def shows() -> bool:
        nonlocal shown
        if contains(shown, expected):
            return True
        pause(_AGAIN)
        shown = shell.run(command)
        return False

    eventually(shows, PATIENCE, lambda: f"{command}\n{shown}")


def _files() -> Iterator[tuple[str, str]]:
    """The files of the guide: their name, which stands in their first line, and content."""
    for part in _BLOCK.finditer(GUIDE.read_text()):
        if part[1] == "yaml":
            yield part[2].partition("\n")[0].removeprefix("# "), part[2]
