"""The flags that a start script passes to its server, as far as they are known before it runs."""

import re
import shlex
from collections.abc import Iterator, Mapping

_ASSIGNED = re.compile(r"([A-Z_]+)=(?!.*(?:\$\(|%|:-))(.+)")
"""Assignments, except those whose value depends on a command or on the pod's environment."""

_CONDITION = re.compile(r'if \[ (?:-n )?"\$\{?([A-Z_]+)[^"]*" (= true )?\]; then')
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)\}?")


def given_flags(script: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The flags, without dashes, with their values; unknown variables are not replaced.

    `variables` are the pod's. Flags in a conditional part count if known variables decide the condition.
    """
    known, found, skipped = dict(variables), dict[str, str](), False
    for line in _lines(script):
        if line.startswith("if "):
            skipped = not _holds(line, known)
        elif line == "fi":
            skipped = False
        elif assigned := _ASSIGNED.fullmatch(line):
            known[assigned[1]] = _filled_in(shlex.split(assigned[2])[0], known)
        elif line.startswith("set -- ") and not skipped:
            found |= {flag: _filled_in(value, known) for flag, value in _flags(shlex.split(line)[2:])}
    return found


def _holds(line: str, known: Mapping[str, str]) -> bool:
    """True if the line's condition is that a variable has a value, or the value `true`, and it holds."""
    condition = _CONDITION.fullmatch(line)
    if condition is None:
        return False
    value = known.get(condition[1], "")
    return value == "true" if condition[2] else bool(value)


def _lines(script: str) -> Iterator[str]:
    yield from (line.strip() for line in script.replace("\\\n", " ").splitlines())


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        flag, given, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag:
            yield flag, value if given else after


def _filled_in(text: str, known: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)
