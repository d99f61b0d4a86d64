"""Every rule of the contract has a test named by its id, or a reason in rules.toml why not."""

import re
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests import rule_coverage

SPEC = rule_coverage.SPEC / "informers-workqueue.md"


RULES = rule_coverage.listed("rules")
PREFIXES = "|".join(sorted({rule.split("-")[0] for rule in RULES}))
NAMED = re.compile(rf"(?:test|and)_({PREFIXES})_(\d+[a-z]?)(?=_)")
WRITTEN = re.compile(rf"\b(?:{PREFIXES})-\d+[a-z]?\b")


def rules_in(name: str) -> list[str]:
    """The ids that the name of a test begins with: `test_WQ_2_and_WQ_4_…`."""
    found, at = [], 0
    while match := NAMED.match(name, at):
        found.append(f"{match[1]}-{match[2]}")
        at = match.end() + 1
    return found


@pytest.fixture(scope="module")
def tested() -> Mapping[str, list[str]]:
    """The names of the tests of each rule."""
    names = defaultdict(list)
    for name in rule_coverage.names_of_tests():
        for rule in rules_in(name):
            names[rule].append(name)
    return names


def test_a_name_tells_the_rules_it_tests() -> None:
    assert ["WQ-2", "REF-40a"] == rules_in("test_WQ_2_and_REF_40a_an_item_and_WQ_9_more")
    assert [] == rules_in("test_an_item_of_WQ_2")


def test_every_rule_that_should_have_a_test_has_one(tested: Mapping[str, list[str]]) -> None:
    assert [] == [rule for rule, state in RULES.items() if state == "test" and rule not in tested]


def test_every_other_rule_has_a_reason() -> None:
    assert [] == [rule for rule, state in RULES.items() if state != "test" and not rule_coverage.REASONED.match(state)]


def test_every_rule_that_a_test_names_is_known(tested: Mapping[str, list[str]]) -> None:
    assert {} == {rule: names for rule, names in tested.items() if rule not in RULES}


def test_the_list_is_the_specifications() -> None:
    if not SPEC.exists():
        pytest.skip("the specification is not beside the repository")
    assert set(WRITTEN.findall(SPEC.read_text())) == set(RULES)
