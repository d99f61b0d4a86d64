"""Every rule of the contract of informers and queues has a marked test, or a reason in rules.toml."""

import re

import pytest

from tests import rule_coverage

SPEC = rule_coverage.SPEC / "informers-workqueue.md"


RULES = rule_coverage.listed("rules")
PREFIXES = "|".join(sorted({rule.split("-")[0] for rule in RULES}))
WRITTEN = re.compile(rf"\b(?:{PREFIXES})-\d+[a-z]?\b")


def test_a_mark_names_the_rules_of_the_next_test() -> None:
    text = '@pytest.mark.rule("WQ-2", "REF-40a")\n@pytest.mark.slow\ndef test_one() -> None:\n\ndef test_two() -> None:'
    assert [("WQ-2", "test_one"), ("REF-40a", "test_one")] == list(rule_coverage.marked(text))


def test_every_rule_that_should_have_a_test_has_one() -> None:
    tested = rule_coverage.tests_of_rules()
    assert [] == [rule for rule, state in RULES.items() if state == "test" and rule not in tested]


def test_every_other_rule_has_a_reason() -> None:
    assert [] == [rule for rule, state in RULES.items() if state != "test" and not rule_coverage.REASONED.match(state)]


def test_every_rule_that_a_test_is_marked_with_is_known() -> None:
    tested = rule_coverage.tests_of_rules()
    assert {} == {rule: names for rule, names in tested.items() if WRITTEN.fullmatch(rule) and rule not in RULES}


def test_the_list_is_the_specifications() -> None:
    if not SPEC.exists():
        pytest.skip("the specification is not beside the repository")
    assert set(WRITTEN.findall(SPEC.read_text())) == set(RULES)
