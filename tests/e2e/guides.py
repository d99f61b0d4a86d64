"""Documents as a reader uses them: commands are typed, and show what the document says, numbers and gaps aside."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import Place

KUBECTL = ROOT / "hack" / "controlplane" / "bin" / "kubectl"
PATIENCE = 60.0
_AGAIN = 0.3
"""Seconds after which a command is typed again."""

_NUMBER = re.compile(r"\b(\d+[smhd])+\b|\d+")


class Shell:
    """A shell in which kubectl means ours, in the sandbox."""

    def __init__(self, place: Place, directory: Path) -> None:
        """`directory` is where commands are typed."""
        self._directory = directory
        self.environment = {
            **os.environ,
            "PATH": f"{KUBECTL.parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(place.kubeconfig("default", "default")),
            "LC_ALL": "C",
        }

    def type(self, command: str, expected: list[str], where: str) -> None:
        """Run a command; repeat a read-only one until it shows what the guide says."""
        only_looks = command.split()[1] in ("get", "describe")
        shown = self.run(command)
        if not only_looks:
            assert expected == shown.splitlines(), f"{where}\n{shown}"
            return

        def shows() -> bool:
            nonlocal shown
            if contains(shown, expected):
                return True
            pause(_AGAIN)
            shown = self.run(command)
            return False

        eventually(shows, PATIENCE, lambda: f"{where} {command}\n{shown}")

    def run(self, command: str) -> str:
        """The output of a command."""
        return self.complete(command).stdout

    def complete(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command that has ended, errors among its output."""
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self._directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )


def section(text: str, heading: str) -> tuple[int, int]:
    """Where a section of a guide begins and ends."""
    begin = text.index(f"\n## {heading}\n")
    return begin, text.index("\n## ", begin + 1)


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, and its output."""
    for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = entry.splitlines()
        yield command, expected


def contains(shown: str, expected: list[str]) -> bool:
    """True if lines come in this order, with other lines between them, regardless of numbers and gaps."""
    lines = iter(plain(line) for line in shown.splitlines())
    return all(plain(wanted) in lines for wanted in expected)


def plain(line: str) -> str:
    """A line without numbers and gaps."""
    return " ".join(_NUMBER.sub("0", line).split())


def anchor(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
