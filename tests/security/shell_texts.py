"""The shell texts in objects of the operator, and a place to run them where nothing but stand-ins is found."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kube.objects import Json

SHELLS = ("dash", "bash")
CANARY = "canary-of-a-spec"
"""A program that no script of the operator runs."""

_PROGRAMS = (
    *("cat", "chmod", "cp", "curl", "dig", "getent", "grep", "head", "hostname", "mkdir", "mysql", "nc", "nslookup"),
    *("sed", "sleep", "sysctl", "tail", "touch", "tr", "wget", "awk", "cut", "od", "date", "rm", "mv", "ls", "pwned"),
)
_ENDS = re.compile(r"^(\s*)(?:exec|exit|return)\b", re.MULTILINE)
_LOOPS = re.compile(r"\b(?:while|until)\b[^\n]*?(?=;|\n)")
_STRICT = re.compile(r"^set -[eu]+$", re.MULTILINE)


def shell_texts(trees: list[Json]) -> Iterator[str]:
    """Every text in objects that a shell reads: scripts in ConfigMaps, and arguments of `sh -c`."""
    for tree in trees:
        yield from (text for text in (tree.get("data") or {}).values() if text.startswith("#!/bin/"))
        yield from _inline(tree)


def _inline(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        words = [*_words(node.get("command")), *_words(node.get("args"))]
        if len(words) > 2 and words[0].endswith("sh") and words[1] == "-c":
            yield words[2]
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _inline(each)


def _words(words: object) -> list[str]:
    return [str(word) for word in words] if isinstance(words, list) else []


def syntax_error(text: str, shell: str) -> str:
    """What the shell says of a text that it cannot parse; empty when it can."""
    return subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=20, check=False).stderr


class Room:
    """A directory with stand-ins for all programs, in which every line of a text is run, whatever others did."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._programs = root / "bin"
        self._programs.mkdir(parents=True)
        for name in _PROGRAMS:
            self._stand_in(name, "exit 0")
        self._stand_in(CANARY, f'echo sung >> "{root}/sung"')

    def sings(self, text: str, shell: str) -> bool:
        """Whether running the text runs the canary: neither an end nor a loop keeps later lines from being run."""
        whole = _STRICT.sub(":", _LOOPS.sub("while false", _ENDS.sub(r"\1:", text)))
        self._sung.unlink(missing_ok=True)
        subprocess.run(
            [f"/usr/bin/{shell}"],
            input=whole,
            text=True,
            capture_output=True,
            timeout=20,
            check=False,
            cwd=self._root,
            env={"PATH": str(self._programs), "POD_NAME": "x-0", "NAMESPACE": "ns", "SHARD": "0"},
        )
        return self._sung.exists()

    @property
    def _sung(self) -> Path:
        return self._root / "sung"

    def _stand_in(self, name: str, body: str) -> None:
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        program.chmod(0o755)
