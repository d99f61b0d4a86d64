import pytest

from informers.expectations import Expectations
from ports.clock import FakeClock

KEY = "ns/a"


@pytest.fixture
def expectations(clock: FakeClock) -> Expectations:
    return Expectations(clock)


def test_EXP_2_a_key_without_expectations_is_satisfied(expectations: Expectations) -> None:
    expectations.creation_observed(KEY)
    expectations.deletion_observed(KEY, "uid")
    assert expectations.satisfied(KEY)


def test_EXP_2_creations_are_counted(expectations: Expectations) -> None:
    expectations.expect_creations(KEY, 2)
    expectations.creation_observed(KEY)
    expectations.creation_observed("ns/other")
    assert not expectations.satisfied(KEY)
    expectations.creation_observed(KEY)
    assert expectations.satisfied(KEY)
    expectations.creation_observed(KEY)
    assert expectations.satisfied(KEY), "more than expected"


def test_EXP_2_a_deletion_counts_once(expectations: Expectations) -> None:
    expectations.expect_deletions(KEY, ["uid-1", "uid-2"])
    expectations.deletion_observed(KEY, "uid-1")
    expectations.deletion_observed(KEY, "uid-1")
    expectations.deletion_observed(KEY, "uid-3")
    assert not expectations.satisfied(KEY)
    expectations.deletion_observed(KEY, "uid-2")
    assert expectations.satisfied(KEY)


def test_EXP_2_after_five_minutes_nobody_waits(expectations: Expectations, clock: FakeClock) -> None:
    expectations.expect_creations(KEY, 1)
    clock.step(300)
    assert not expectations.satisfied(KEY)
    clock.step(0.1)
    assert expectations.satisfied(KEY)
    expectations.expect_creations(KEY, 1)
    assert not expectations.satisfied(KEY)
    expectations.forget(KEY)
    assert expectations.satisfied(KEY)
