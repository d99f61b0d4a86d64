"""The number of findings that each file may have, which only falls (allowed.txt).

The file has one line `NUMBER PATH` for each file that the style has not reached yet. All other files have no finding.
Git merges it by union, so a path may have two lines; the smaller number holds.
"""

from collections.abc import Mapping
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed.txt")


def read(file: Path = ALLOWED) -> Mapping[str, int]:
    """The number of findings that each file may have."""
    allowed: dict[str, int] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        number, _, path = line.partition(" ")
        if number.isdecimal():
            allowed[path] = min(int(number), allowed.get(path, int(number)))
    return allowed


def moved(allowed: Mapping[str, int], existing: frozenset[str]) -> Mapping[str, int]:
    """The numbers for the files that exist: a file that was moved keeps its number if its name is unambiguous."""
    gone = [path for path in allowed if path not in existing]
    known = {path: number for path, number in allowed.items() if path in existing}
    for path in existing - allowed.keys():
        name = path.rpartition("/")[2]
        if len(before := [each for each in gone if each.rpartition("/")[2] == name]) == 1:
            known[path] = allowed[before[0]]
    return known


def lowered(allowed: Mapping[str, int], found: Mapping[str, int]) -> Mapping[str, int]:
    """The numbers after a file was cleaned: never more than before, and no line for a clean file."""
    each = {path: min(number, found.get(path, 0)) for path, number in allowed.items()}
    return {path: number for path, number in each.items() if number}


def write(allowed: Mapping[str, int], file: Path = ALLOWED) -> None:
    """Write the numbers, one path per line, sorted."""
    lines = [f"{number} {path}\n" for path, number in sorted(allowed.items())]
    file.write_text("".join(lines), encoding="utf-8")
