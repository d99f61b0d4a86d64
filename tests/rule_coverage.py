"""What the names of tests and the first lines of plans say that they prove."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SPEC = TESTS.parents[1] / "shared" / "spec"


REASONED = re.compile(r"(elsewhere|later): \S")
"""The state of what has no test of its name."""


_TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)


def listed(name: str) -> Mapping[str, str]:
    """The table of that name in the file of that name: ids, each with `test` or a reason."""
    with (TESTS / f"{name}.toml").open("rb") as file:
        found: dict[str, str] = tomllib.load(file)[name]
    return found


@cache
def names_of_tests() -> tuple[str, ...]:
    """The name of every test function."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py")))
    return tuple(name for text in texts for name in _TEST.findall(text))


def plans() -> Iterator[tuple[str, str]]:
    """The file name of every plan that is kept, and its first line: a comment."""
    for path in sorted((TESTS / "simulate" / "plans").glob("*.yaml")):
        yield path.name, path.read_text(encoding="utf-8").partition("\n")[0]
