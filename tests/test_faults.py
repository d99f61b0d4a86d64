"""Every fault rule, scenario and upstream thread has a marked test or a plan, or a reason in faults.toml."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from tests import rule_coverage

SECTION = re.compile(r"^## 16\. .*?^## 17\. ", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| ([FR]\d+) \|", re.MULTILINE)
THREAD = re.compile(r"#\d+\b")
NAMED = re.compile(r"\b[FR]\d+\b|#\d+\b")


FAULTS = rule_coverage.listed("faults")


def _proven() -> Iterator[tuple[str, str]]:
    """Each fault, scenario or thread, and a test or plan of it."""
    for fault, names in rule_coverage.tests_of_rules().items():
        yield from ((fault, name) for name in names)
    for name, line in rule_coverage.plans():
        for word in NAMED.findall(line):
            yield word, name


@pytest.fixture(scope="module")
def proven() -> Mapping[str, list[str]]:
    """The tests and plans of each fault."""
    by = defaultdict(list)
    for fault, name in _proven():
        by[fault].append(name)
    return by


def test_every_fault_that_should_have_a_test_has_one(proven: Mapping[str, list[str]]) -> None:
    assert [] == [fault for fault, state in FAULTS.items() if state == "test" and fault not in proven]


def test_every_other_fault_has_a_reason() -> None:
    assert [] == [
        fault for fault, state in FAULTS.items() if state != "test" and not rule_coverage.REASONED.match(state)
    ]


def test_every_fault_that_a_test_names_is_known(proven: Mapping[str, list[str]]) -> None:
    named = {fault: names for fault, names in proven.items() if re.fullmatch(r"[FR]\d+", fault)}
    assert {} == {fault: names for fault, names in named.items() if fault not in FAULTS}


def test_the_list_is_the_specifications() -> None:
    if not rule_coverage.SPEC.exists():
        pytest.skip("the specification is not beside the repository")
    section = SECTION.search((rule_coverage.SPEC / "lifecycle.md").read_text(encoding="utf-8"))
    assert section is not None
    scenarios = (rule_coverage.SPEC / "reliability.md").read_text(encoding="utf-8")
    written = ROW.findall(section[0]) + THREAD.findall(section[0]) + ROW.findall(scenarios) + THREAD.findall(scenarios)
    assert set(written) == set(FAULTS)
