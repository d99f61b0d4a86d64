"""The commands of docs/backup.md run in order and show the documented output."""

import re
from pathlib import Path

import pytest
import yaml

from tests.e2e import operators, worlds
from tests.e2e.guides import KUBECTL, Shell, anchor, commands
from tests.e2e.operators import ROOT

GUIDE = ROOT / "docs" / "backup.md"

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_link_of_the_guide_leads_somewhere() -> None:
    text = GUIDE.read_text()
    headings = {anchor(each) for each in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        assert (GUIDE.parent / path).exists() if path else heading in headings, target


def test_nothing_in_the_guide_looks_like_code_and_is_not_run() -> None:
    fences = re.findall(r"^```(\w*)$", GUIDE.read_text(), re.MULTILINE)
    assert {"console", "yaml"} == set(fences[::2])


def test_the_sample_takes_the_steps_of_the_guide() -> None:
    """Object by object, but for those that the guide alone has."""
    of_guide = {_name(each): each for _, block in _blocks() for each in yaml.safe_load_all(block)}
    of_sample = {
        _name(each): each for each in yaml.safe_load_all((ROOT / "manifests" / "samples" / "backup.yaml").read_text())
    }
    same = ("PersistentVolumeClaim backups", "Role tidb-backup-manager", "Job write", "Job look")
    assert [of_guide[each] for each in same] == [of_sample[each] for each in same]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_commands_of_the_guide_show_the_documented_output(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    for name, block in _blocks():
        (tmp_path / name).write_text(block)
    with worlds.sandbox(tmp_path) as place, operators.running(place.new_log(), place.environment()):
        shell = Shell(place, tmp_path)
        text = GUIDE.read_text()
        for part in _BLOCK.finditer(text):
            line = text.count("\n", 0, part.start()) + 1
            for command, expected in commands(part[2]) if part[1] == "console" else ():
                shell.type(command, expected, f"{GUIDE.name}:{line} {command}")


def _blocks() -> list[tuple[str, str]]:
    """The files of the guide: their name, which stands in their first line, and content."""
    found = [part[2] for part in _BLOCK.finditer(GUIDE.read_text()) if part[1] == "yaml"]
    return [(block.partition("\n")[0].removeprefix("# "), block) for block in found]


def _name(tree: dict[str, dict[str, str]]) -> str:
    return f"{tree['kind']} {tree['metadata']['name']}"
