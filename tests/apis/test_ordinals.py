"""The number and ordinals of pods (defaults-and-validation.md 8.3, lifecycle.md 4.2, 4.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis.ordinals import delete_slots, desired_ordinals, desired_replicas, ordinals, parse_slots
from apis.shared import Json
from tests.apis.clusters import cluster, minimal


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ({1}, [0, 2, 3]),
        ({0, 5}, [1, 2, 3]),
        ({3}, [0, 1, 2]),
        ({0, 3}, [1, 2, 4]),
        (set(), [0, 1, 2]),
        ({5}, [0, 1, 2]),
    ],
)
def test_skips_delete_slots(slots: set[int], expected: list[int]) -> None:
    assert expected == ordinals(3, slots)


@pytest.mark.slow
@given(st.integers(0, 20), st.sets(st.integers(0, 40)))
def test_returns_as_many_ordinals_as_replicas_and_no_slot(replicas: int, slots: set[int]) -> None:
    result = ordinals(replicas, slots)
    assert replicas == len(result)
    assert not slots & set(result)
    assert sorted(result) == result


@pytest.mark.parametrize(("text", "slots"), [("[1,3]", {1, 3}), ("[]", set()), ("null", set()), ("[1,1]", {1})])
def test_slots_are_a_json_list(text: str, slots: set[int]) -> None:
    assert slots == parse_slots(text)


@pytest.mark.parametrize("text", ["", "{}", '["1"]', "[1.5]", "[-1]", "[2147483648]", "[true]", "1"])
def test_refuses_slots_that_are_no_list_of_ordinals(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        parse_slots(text)


def test_slots_count_only_with_the_advanced_feature() -> None:
    tc = cluster(minimal(), annotations={"tikv.tidb.pingcap.com/delete-slots": "[1]"})
    assert frozenset() == delete_slots(tc, "tikv")
    assert frozenset({1}) == delete_slots(tc, "tikv", advanced=True)
    assert [0, 1, 2] == desired_ordinals(tc, "tikv")
    assert [0, 2, 3] == desired_ordinals(tc, "tikv", advanced=True)


FAILURES: Json = {
    "pd": {
        "failureMembers": {"a": {"memberDeleted": True}, "b": {"memberDeleted": False}},
        "volReplaceInProgress": True,
    },
    "tikv": {"failureStores": {"1": {}, "2": {}}, "volReplaceInProgress": True},
    "tidb": {"failureMembers": {"a": {}}},
    "tiflash": {"failureStores": {"3": {}}},
}


def test_substitutes_and_spares_are_added() -> None:
    tiflash = {"replicas": 1, "storageClaims": []}
    tc = cluster(minimal(tikv={"spareVolReplaceReplicas": 2}, tiflash=tiflash, ticdc={"replicas": 4}), status=FAILURES)
    names = ("pd", "tikv", "tidb", "tiflash", "ticdc", "tiproxy", "discovery")
    assert [3 + 1 + 1, 3 + 2 + 2, 2 + 1, 1 + 1, 4, 0, 0] == [desired_replicas(tc, name) for name in names]
    assert [0, 1, 2] == desired_ordinals(tc, "tikv", with_failover=False)
    assert [] == desired_ordinals(tc, "tiproxy")
