"""The rules that tests prove by `@pytest.mark.rule`, and the first lines of plans."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SPEC = TESTS.parents[1] / "shared" / "spec"


REASONED = re.compile(r"(elsewhere|later): \S")
"""The state of a rule without a test."""


_MARK_OR_TEST = re.compile(r"@pytest\.mark\.rule\(([^)]*)\)|^ *def (test_\w+)", re.MULTILINE)


def listed(name: str) -> Mapping[str, str]:
    """The table `name` of `name`.toml: rule ids, each with `test` or a reason."""
    with (TESTS / f"{name}.toml").open("rb") as file:
        found: dict[str, str] = tomllib.load(file)[name]
    return found


def marked(text: str) -> Iterator[tuple[str, str]]:
    """The rule and the test of each mark in the source of a module."""
    rules: list[str] = []
    for listed, test in _MARK_OR_TEST.findall(text):
        if test:
            yield from ((rule, test) for rule in rules)
            rules = []
        else:
            rules += re.findall(r'"([^"]+)"', listed)


@cache
def tests_of_rules() -> Mapping[str, Sequence[str]]:
    """The names of the tests of each rule."""
    names: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for rule, test in marked(path.read_text(encoding="utf-8")):
            names.setdefault(rule, []).append(test)
    return names


def plans() -> Iterator[tuple[str, str]]:
    """The file name and the first line, a comment, of every plan in tests/simulate/plans."""
    for path in sorted((TESTS / "simulate" / "plans").glob("*.yaml")):
        yield path.name, path.read_text(encoding="utf-8").partition("\n")[0]
