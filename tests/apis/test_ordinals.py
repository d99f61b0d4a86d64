"""The number and ordinals of pods (defaults-and-validation.md 8.3, lifecycle.md 4.2, 4.4)."""

import itertools
import json
import subprocess
from collections.abc import Collection, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis.decoding import decode, encode
from apis.ordinals import (
    OrdinalSet,
    delete_slots,
    desired_ordinals,
    desired_replicas,
    gated,
    parse_slots,
    spec_ordinals,
)
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from tests.apis.clusters import cluster, minimal
from tests.e2e import upstream


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
    assert expected == list(OrdinalSet(3, frozenset(slots)))


@pytest.mark.slow
@given(st.integers(0, 20), st.sets(st.integers(0, 40)))
def test_returns_as_many_ordinals_as_replicas_and_no_slot(replicas: int, slots: set[int]) -> None:
    result = OrdinalSet(replicas, frozenset(slots)).ordinals
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
    assert frozenset({1}) == delete_slots(gated(tc, True), "tikv")
    assert [0, 1, 2] == list(desired_ordinals(tc, "tikv"))
    assert [0, 2, 3] == list(desired_ordinals(gated(tc, True), "tikv"))
    assert [0, 1, 2] == list(desired_ordinals(gated(gated(tc, True), False), "tikv"))


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
    assert [0, 1, 2] == list(spec_ordinals(tc, "tikv"))
    assert [] == list(desired_ordinals(tc, "tiproxy"))


def test_pods_without_the_feature_ignore_slots_in_json() -> None:
    tree = encode(cluster(minimal()))
    tree["metadata"] |= {"countsSlots": True, "counts_slots": True}
    assert not decode(tree, TidbCluster).metadata.counts_slots


@pytest.mark.parametrize("slots", ["[1", "[-1]"])
def test_slots_that_validation_refuses_do_not_count(slots: str) -> None:
    tc = gated(cluster(minimal(), annotations={"tikv.tidb.pingcap.com/delete-slots": slots}), True)
    assert [0, 1, 2] == list(desired_ordinals(tc, "tikv"))


def test_pump_has_no_slots() -> None:
    pump = {"replicas": 2, "requests": {"storage": "1Gi"}}
    tc = cluster(minimal(pump=pump), annotations={"pump.tidb.pingcap.com/delete-slots": "[0]"})
    assert [0, 1] == list(desired_ordinals(gated(tc, True), "pump"))


def test_a_lost_pod_whose_ordinal_becomes_a_slot_has_no_substitute() -> None:
    lost = {"failureStores": {"1": {"podName": "demo-tikv-1"}, "2": {"podName": "demo-tikv-2"}}}
    tc = cluster(minimal(), status={"tikv": lost}, annotations={"tikv.tidb.pingcap.com/delete-slots": "[1]"})
    assert [0, 1, 2, 3, 4] == list(desired_ordinals(tc, "tikv"))
    assert [0, 2, 3, 4] == list(desired_ordinals(gated(tc, True), "tikv"))
    assert [0, 2, 3] == list(spec_ordinals(gated(tc, True), "tikv"))


def sets(most: int = 9) -> st.SearchStrategy[OrdinalSet]:
    return st.builds(OrdinalSet, st.integers(0, 6), st.frozensets(st.integers(0, most), max_size=6))


def test_a_set_without_pods_has_no_ordinal_and_its_slots_no_effect() -> None:
    assert (0, []) == (OrdinalSet(0, frozenset({0, 1})).bound, OrdinalSet(0, frozenset({0, 1})).ordinals)


def by_counting(replicas: int, slots: Collection[int]) -> list[int]:
    """The first `replicas` numbers that are no slots, found one by one."""
    return list(itertools.islice((each for each in itertools.count() if each not in slots), replicas))


@pytest.mark.slow
@given(sets())
def test_ordinals_are_the_first_numbers_that_are_no_slots(pods: OrdinalSet) -> None:
    assert by_counting(pods.replicas, pods.slots) == pods.ordinals
    assert (pods.ordinals[-1] + 1 if pods.ordinals else 0) == pods.bound


def test_ordinals_equal_the_ordinals_of_advanced_stateful_sets_in_v1_6() -> None:
    program = upstream.ordinals()
    asked = [OrdinalSet(count, frozenset(slots)) for count in range(5) for slots in subsets(range(7))]
    lines = [json.dumps({"replicas": each.replicas, "slots": sorted(each.slots)}) for each in asked]
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [each.ordinals for each in asked]


def subsets(numbers: Iterable[int]) -> list[tuple[int, ...]]:
    there = list(numbers)
    return [each for size in range(len(there) + 1) for each in itertools.combinations(there, size)]


@pytest.mark.parametrize(
    ("before", "wanted", "expected"),
    [
        ((4, []), (3, [1]), [(1, 3, [1])]),
        ((3, []), (3, [1]), [(3, 4, []), (1, 3, [1])]),
        ((3, [1]), (4, []), [(1, 4, [])]),
        ((3, [1]), (3, []), [(1, 4, []), (3, 3, [])]),
        ((4, []), (2, [0]), [(3, 3, []), (0, 2, [0])]),
        ((3, []), (3, [5]), []),
        ((3, [0]), (3, [2]), [(0, 4, []), (2, 3, [2])]),
        ((5, []), (3, [1, 3, 4]), [(5, 6, []), (4, 5, [4]), (3, 4, [3, 4]), (1, 3, [1, 3, 4])]),
        ((3, []), (3, [1, 3, 4]), [(5, 4, [3, 4]), (1, 3, [1, 3, 4])]),
        ((3, [1]), (2, [1]), [(3, 2, [1])]),
        ((6, []), (3, [0, 2, 4]), [(4, 5, [4]), (2, 4, [2, 4]), (0, 3, [0, 2, 4])]),
    ],
)
def test_steps_equal_the_steps_of_v1_6(
    before: tuple[int, list[int]], wanted: tuple[int, list[int]], expected: list[tuple[int, int, list[int]]]
) -> None:
    now, goal = OrdinalSet(before[0], frozenset(before[1])), OrdinalSet(wanted[0], frozenset(wanted[1]))
    taken = []
    while steps := now.steps(goal):
        now = steps[0].after
        taken.append((steps[0].ordinal, now.replicas, sorted(now.slots)))
    assert expected == taken


@pytest.mark.slow
@given(sets(), sets())
def test_each_step_changes_one_pod_and_the_steps_end_at_the_wanted_pods(before: OrdinalSet, wanted: OrdinalSet) -> None:
    now, there, goal = before, set(before.ordinals), set(wanted.ordinals)
    joining, leaving = goal - there, there - goal
    while steps := now.steps(wanted):
        for step in steps:
            there ^= {step.ordinal}
            assert sorted(there) == step.after.ordinals
            assert wanted.slots >= {slot for slot in step.after.slots if slot > step.after.bound - 1}
        now = steps[-1].after
    assert wanted.ordinals == now.ordinals
    assert joining == set(now.ordinals) - set(before.ordinals)
    assert leaving == set(before.ordinals) - set(now.ordinals)


@pytest.mark.slow
@given(sets(), sets())
def test_steps_may_stop_anywhere_and_continue(before: OrdinalSet, wanted: OrdinalSet) -> None:
    at_once = before.steps(wanted)
    for done, step in enumerate(at_once[:-1], start=1):
        assert at_once[done:] == step.after.steps(wanted)


@pytest.mark.slow
@given(st.integers(0, 6), st.integers(0, 6))
def test_without_slots_the_highest_ordinals_join_and_leave(before: int, wanted: int) -> None:
    taken = [step.ordinal for step in OrdinalSet(before).steps(OrdinalSet(wanted))]
    assert (list(range(before, wanted)) or list(range(before - 1, wanted - 1, -1))) == taken
    assert not any(step.after.slots for step in OrdinalSet(before).steps(OrdinalSet(wanted)))
