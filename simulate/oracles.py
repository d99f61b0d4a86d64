"""What is judged by comparison with runs of the same plan without faults (reliability.md 3)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from simulate.end_state import Leaves, differing
from simulate.judge import Violation
from simulate.run import Outcome

_SHOWN = 5

_MAKES_OR_ENDS = re.compile(r"(POST|DELETE) [a-z]+[.a-z0-9]* |DELETE .*/pd/api/v1/(store|members)/")
"""Creations and deletions of objects, of stores and of members; what else is posted to a component is idempotent."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a plan without faults comes to. `masked` are the paths at which two such runs differed."""

    end: Leaves
    masked: frozenset[str]
    summary: Mapping[str, int]


def reference(runs: Sequence[Outcome]) -> Reference:
    """What several runs of the same plan, with different seeds, have in common."""
    first = runs[0]
    masked = {path for other in runs[1:] for path in differing(first.end, other.end)}
    keys = {key for each in runs for key in each.summary}
    summary = {key: max(each.summary.get(key, 0) for each in runs) for key in keys}
    return Reference(first.end, frozenset(masked), summary)


def compare(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """What the end has that the reference has not (O1), and what was created and deleted more often (O2)."""
    at = outcome.plan.budget
    paths = sorted(differing(outcome.end, known.end) - known.masked)
    for path in paths[:_SHOWN]:
        yield Violation("O1", at, f"{path} is {outcome.end.get(path)!r} and not {known.end.get(path)!r}")
    if len(paths) > _SHOWN:
        yield Violation("O1", at, f"and {len(paths) - _SHOWN} more differences")
    for key, count in sorted(outcome.summary.items()):
        usual = known.summary.get(key, 0)
        if usual and key.startswith("DELETE pods "):
            # while we were away, the StatefulSet may have brought back what was deleted only half-way
            usual += len(outcome.plan.faults)
        if _MAKES_OR_ENDS.match(key) and count > usual:
            yield Violation("O2", at, f"{key}: {count} times instead of {usual}")
