"""Each memory of the operator saves what it is kept for (bench/memories.json)."""

import pytest

from bench.memories import MEMORIES, Figures, Memory, recorded

_TOLERANCE = 0.1
_HINT = "if it has to be so, record it: python -m bench.memories --record"


def differs(now: int, before: int) -> bool:
    return abs(now - before) > _TOLERANCE * before


@pytest.mark.slow
@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.name)
def test_a_memory_saves_what_is_recorded(memory: Memory) -> None:
    now, before = memory.measured(), recorded()[memory.name]
    assert now.pays, f"{memory.name} saves nothing, delete it: {now}"
    differing = differs(now.with_, before.with_) or differs(now.without, before.without)
    assert not differing, f"{now} where {before} was recorded; {_HINT}"


def test_each_record_is_of_a_memory() -> None:
    assert {memory.name: memory.counted for memory in MEMORIES} == {
        name: figures.counted for name, figures in recorded().items()
    }


@pytest.mark.parametrize(
    ("with_it", "without", "pays"), [(0, 1, True), (10, 11, True), (100, 109, False), (0, 0, False), (5, 4, False)]
)
def test_a_memory_pays_if_without_it_at_least_a_tenth_more_is_counted(with_it: int, without: int, pays: bool) -> None:
    assert pays == Figures("requests", with_it, without).pays
