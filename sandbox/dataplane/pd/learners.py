"""Where the replicas of tables on TiFlash live: learners beside the voters of regions (dataplane-apis.md 15.2).

Pure: a placement in, the next placement out. A table is one placement rule of the group `tiflash`; its keys are cut
into parts, each of which has as many replicas as the rule counts, on stores of TiFlash alone. Learners do not vote: one
that is lost is made anew from the voters.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from sandbox.dataplane.pd.regions import Place

PARTS = 6
"""The regions of a table."""

Learners: TypeAlias = Mapping[str, tuple[tuple[int, ...], ...]]
"""By rule: of each part of the table, the stores with a replica of it."""


def learners_on(learners: Learners, store: int) -> int:
    """How many replicas a store has."""
    return sum(store in part for parts in learners.values() for part in parts)


def place(learners: Learners, counts: Mapping[str, int], places: Sequence[Place], moves: int) -> Learners:
    """The placement one round later, `moves` replicas further; equal to `learners` when there is nothing to move."""
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
    """Each change that is due, on the board as it is by then."""
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
