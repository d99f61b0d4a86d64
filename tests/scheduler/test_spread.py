"""The maximum number of a component's pods in a topology (scheduler-deployment.md 2.5, 2.6)."""

from collections import Counter

import pytest

from ports.randomness import Randomness, SeededRandomness
from scheduler.placement import PD, TIKV, Spread

NODES = "abcd"


def placed(component: str, replicas: int, nodes: int, draws: Randomness | None = None) -> list[int]:
    """The number of pods per node after placing them one by one, on the first allowed node or a random one."""
    counts = Counter(dict.fromkeys(NODES[:nodes], 0))
    for _ in range(replicas):
        used = sum(count > 0 for count in counts.values())
        chosen = sorted(Spread(component, replicas, counts, used).choose())
        if not chosen:
            break
        counts[chosen[draws.integer(0, len(chosen) - 1) if draws else 0]] += 1
    return [counts[node] for node in NODES[:nodes]]


@pytest.mark.parametrize(
    ("component", "replicas", "expected"),
    [
        (PD, 1, ([1], [1, 0], [1, 0, 0], [1, 0, 0, 0])),
        (PD, 2, ([1], [1, 1], [1, 1, 0], [1, 1, 0, 0])),
        (PD, 3, ([1], [1, 1], [1, 1, 1], [1, 1, 1, 0])),
        (PD, 4, ([1], [1, 1], [1, 1, 1], [1, 1, 1, 1])),
        (PD, 5, ([2], [2, 2], [2, 2, 1], [2, 1, 1, 1])),
        (PD, 6, ([2], [2, 2], [2, 2, 2], [2, 2, 1, 1])),
        (PD, 7, ([3], [3, 3], [3, 2, 2], [2, 2, 2, 1])),
        (PD, 9, ([4], [4, 4], [3, 3, 3], [3, 2, 2, 2])),
        (TIKV, 3, ([1], [1, 1], [1, 1, 1], [1, 1, 1, 0])),
        (TIKV, 4, ([1], [1, 1], [2, 1, 1], [1, 1, 1, 1])),
        (TIKV, 5, ([1], [1, 1], [2, 2, 1], [2, 1, 1, 1])),
        (TIKV, 7, ([1], [1, 1], [3, 2, 2], [2, 2, 2, 1])),
    ],
)
@pytest.mark.rule("scheduler-deployment-2.6")
def test_pods_are_placed_as_the_table_says(component: str, replicas: int, expected: tuple[list[int], ...]) -> None:
    for nodes, counts in enumerate(expected, start=1):
        assert counts == placed(component, replicas, nodes), f"{nodes} nodes"


@pytest.mark.rule("scheduler-deployment-2.6")
def test_five_pds_on_three_nodes_are_2_2_1_in_any_order() -> None:
    for seed in range(200):
        assert [1, 2, 2] == sorted(placed(PD, 5, 3, SeededRandomness(seed)))


@pytest.mark.rule("scheduler-deployment-2.4")
def test_of_three_topologies_none_holds_half_of_pd() -> None:
    for replicas in range(3, 12):
        counts = placed(PD, replicas, 3)
        assert sum(counts) == 3 if replicas == 4 else sum(counts) == replicas
        assert max(counts) < replicas / 2


@pytest.mark.rule("scheduler-deployment-2.5")
def test_few_replicas_of_tikv_go_anywhere() -> None:
    assert {"a", "b"} == Spread(TIKV, 2, {"a": 1, "b": 0}, 1).choose()


@pytest.mark.rule("scheduler-deployment-2.5")
def test_topologies_used_elsewhere_count_for_tikv() -> None:
    assert frozenset() == Spread(TIKV, 4, {"a": 1}, 2).choose()
    assert {"a"} == Spread(TIKV, 4, {"a": 1}, 3).choose()


@pytest.mark.rule("scheduler-deployment-2.5")
def test_the_refusal_names_topologies_counts_and_limit() -> None:
    assert "unable to schedule to topology: a (1 pd pods), b (1 pd pods), max pods per topology: 1" == (
        Spread(PD, 3, {"b": 1, "a": 1}, 2).refusal()
    )
    assert "no candidate node has the label of the topology" == Spread(PD, 3, {}, 2).refusal()
