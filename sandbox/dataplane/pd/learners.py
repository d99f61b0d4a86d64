"""The placement of TiFlash replicas: learners beside the voters of regions (dataplane-apis.md 15.2).

Pure: a placement in, the next placement out. A table is a placement rule of the group `tiflash`. Its keys are split
into parts, each with as many replicas as the rule requires, on TiFlash stores only. Learners do not vote: a lost one is
rebuilt from the voters.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from sandbox.dataplane.pd.regions import Place

PARTS = 6
"""The number of parts of a table."""

Learners: TypeAlias = Mapping[str, tuple[tuple[int, ...], ...]]
"""By rule: the stores with a replica, for each part of the table."""


def learners_on(learners: Learners, store: int) -> int:
    """The number of replicas on a store."""
    return sum(store in part for parts in learners.values() for part in parts)


def place(learners: Learners, counts: Mapping[str, int], places: Sequence[Place], moves: int) -> Learners:
    """The placement one round later, after at most `moves` changes; equal to `learners` if nothing needs to move."""
    board = {rule: list(learners.get(rule, ((),) * PARTS)) for rule in counts}
    for rule, index, better in _changes(board, counts, {place.id: place for place in places}):
        if moves <= 0:
            break
        board[rule][index] = better
        moves -= 1
    return {rule: tuple(parts) for rule, parts in board.items()}


def _changes(
    board: Mapping[str, list[tuple[int, ...]]], counts: Mapping[str, int], places: Mapping[int, Place]
) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """The due changes, each computed on the current board."""
    for rule, parts in board.items():
        for index in range(len(parts)):
            while (better := _better(parts[index], counts[rule], board, places)) != parts[index]:
                yield rule, index, better


def _better(
    part: tuple[int, ...], count: int, board: Mapping[str, list[tuple[int, ...]]], places: Mapping[int, Place]
) -> tuple[int, ...]:
    """A part with one replica more, less, or elsewhere."""
    leaving = [store for store in part if store not in places or places[store].is_left]
    if len(part) > count:
        gone = leaving[0] if leaving else part[-1]
        return tuple(store for store in part if store != gone)
    free = [store for store, place in places.items() if place.takes_peers and store not in part]
    target = min(
        free, key=lambda store: (sum(store in each for parts in board.values() for each in parts), store), default=None
    )
    if target is None or (len(part) == count and not leaving):
        return part
    stay = part if len(part) < count else tuple(store for store in part if store != leaving[0])
    return (*stay, target)
