"""The shell texts in objects of the operator, and a room in which nothing but stand-ins runs."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube.objects import Json

SHELLS = ("dash", "bash")
CANARY = "canary-of-a-spec"
"""A program that no script of the operator runs."""

_PROGRAMS = (
    *("cat", "chmod", "cp", "curl", "dig", "getent", "grep", "head", "hostname", "mkdir", "mysql", "nc", "nslookup"),
    *("sed", "sleep", "sysctl", "tail", "touch", "tr", "wget", "awk", "cut", "od", "date", "rm", "mv", "ls", "pwned"),
)
_RECORD = "recorded-call"
"""The stand-in for programs that a script names by their path; their path is its first argument."""
_CALLED = re.compile(r"^([ \t]*)(?:exec[ \t]+)?(?=/)", re.MULTILINE)
_REPLACED = re.compile(r"^([ \t]*)exec[ \t]+", re.MULTILINE)
_ENDS = re.compile(r"^([ \t]*)(?:exit|return)\b", re.MULTILINE)
_LOOPS = re.compile(r"\b(?:while|until)\b[^\n]*?(?=;|\n)")
_STRICT = re.compile(r"^set -[eu]+$", re.MULTILINE)
_BEGINS = "\x01"
"""Stands before each call in the record of calls."""


def shell_texts(trees: list[Json]) -> Iterator[str]:
    """Every text in objects that a shell reads: scripts in ConfigMaps, and arguments of `sh -c`."""
    for tree in trees:
        yield from (text for text in (tree.get("data") or {}).values() if text.startswith("#!/bin/"))
        yield from _inline(tree)


def _inline(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        words = words_of(node)
        if runs_shell(words):
            yield words[2]
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _inline(each)


def words_of(container: Mapping[str, object]) -> list[str]:
    """The command of a container with its arguments; empty for anything else."""
    parts = (container.get("command"), container.get("args"))
    return [str(word) for part in parts if isinstance(part, list) for word in part]


def runs_shell(words: Sequence[str]) -> bool:
    """True if a command passes one of its arguments to a shell."""
    return len(words) > 2 and words[0].endswith("sh") and words[1] == "-c"


def syntax_error(text: str, shell: str) -> str:
    """The shell's error for a text that it cannot parse; empty if it can."""
    return subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=20, check=False).stderr


@dataclass(frozen=True, slots=True)
class Ran:
    """The effects of a text: the programs that it called, each with its arguments; the canary is one of them."""

    calls: list[list[str]]

    @property
    def has_canary_sung(self) -> bool:
        """True if a part of a spec was executed."""
        return any(CANARY in call[:1] for call in self.calls)


class Room:
    """A directory with stand-ins for all programs, in which every line of a text is run, whatever others did."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._programs = root / "bin"
        self._programs.mkdir(parents=True)
        self._record = root / "calls"
        for name in (*_PROGRAMS, CANARY):
            self._stand_in(name, f"'{name}'")
        self._stand_in(_RECORD, "")

    def run(self, text: str, shell: str, variables: Mapping[str, str] | None = None) -> Ran:
        """Run a text: neither an end nor a loop keeps later lines from being run."""
        whole = _CALLED.sub(rf"\1{_RECORD} ", text)
        for pattern, instead in ((_REPLACED, r"\1"), (_ENDS, r"\1:"), (_LOOPS, "while false"), (_STRICT, ":")):
            whole = pattern.sub(instead, whole)
        self._record.write_bytes(b"")
        subprocess.run(
            [f"/usr/bin/{shell}"],
            input=whole,
            text=True,
            capture_output=True,
            timeout=20,
            check=False,
            cwd=self._root,
            env={"POD_NAME": "x-0", "NAMESPACE": "ns", "SHARD": "0", **(variables or {}), "PATH": str(self._programs)},
        )
        _, *calls = self._record.read_bytes().decode().split(_BEGINS)
        return Ran([call.split("\0")[:-1] for call in calls])

    def sings(self, text: str, shell: str) -> bool:
        """True if running the text runs the canary."""
        return self.run(text, shell).has_canary_sung

    def _stand_in(self, name: str, also: str) -> None:
        program = self._programs / name
        record = f"printf '{_BEGINS}' >> '{self._record}'\nprintf '%s\\0' {also} \"$@\" >> '{self._record}'\n"
        program.write_text(f"#!/bin/sh\n{record}", "utf-8")
        program.chmod(0o755)
