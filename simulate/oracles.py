"""What is judged by comparison with other runs (reliability.md 3).

With runs of the same plan without faults: O1, which with crashes stands for I31 too, and O2. With runs that went to the
same spec directly, where the plan made detours: O6, which stands for I32.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from msgspec.structs import replace

from simulate.end_state import Leaves, differing
from simulate.judge import Violation
from simulate.plan import Edit, Plan, Second
from simulate.run import Outcome
from simulate.trees import difference, leaves, merged
from simulate.worlds import CLUSTERS

_SHOWN = 5

_LEFT_BEHIND = frozenset({"createPassword", "replicas", "storage", "storageVolumes", "volumeAttributesClassName"})
"""What is taken back in part: volumes stay when pods go, never get smaller, and keep the attributes they got; the
password that was made for a user is that user's.
"""

_HISTORY = re.compile(r"^configmaps/basic-[a-z]+-\d+\.|\.conditions\[CertificatesValid\]")
"""What depends on the way only: texts that pods were started with once, and that certificates were used."""

_MAKES_OR_ENDS = re.compile(r"(POST|DELETE) [a-z]+[.a-z0-9]* |DELETE .*/pd/api/v1/(store|members)/")
"""Creations and deletions of objects, of stores and of members; what else is posted to a component is idempotent."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a plan without faults comes to. `masked` are the paths at which two such runs differed."""

    end: Leaves
    masked: frozenset[str]
    summary: Mapping[str, int]
    restarts: Mapping[str, int]


def reference(runs: Sequence[Outcome]) -> Reference:
    """What several runs of the same plan, with different seeds, have in common."""
    first = runs[0]
    masked = {path for other in runs[1:] for path in differing(first.end, other.end)}
    keys = {key for each in runs for key in each.summary}
    summary = {key: max(each.summary.get(key, 0) for each in runs) for key in keys}
    pods = {pod for each in runs for pod in each.restarts}
    restarts = {pod: max(each.restarts.get(pod, 0) for each in runs) for pod in pods}
    return Reference(first.end, frozenset(masked), summary, restarts)


def direct_plan(plan: Plan) -> Plan | None:
    """The plan that goes directly to the spec where another ends after detours; None when it makes none (O6)."""
    if not plan.ends_done or not (plan.reference or not plan.faults) or any(edit.does_more for edit in plan.edits):
        return None
    first = last = CLUSTERS[plan.cluster]()["spec"]
    touched = set()
    for edit in plan.edits:
        there, last = last, merged(last, edit.spec)
        touched |= set(leaves(difference(there, last)))
    net = difference(first, last)
    if any(_LEFT_BEHIND.intersection(path) for path in touched) or touched == set(leaves(net)):
        return None
    edits = (Edit(at=1.0, spec=net),) if net else ()
    return replace(plan, name=f"{plan.name} (direct)", seed=1, edits=edits, faults=())


def compare(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """What the end has that the reference has not (O1), and what was created and deleted more often (O2, R24)."""
    plan = outcome.plan
    if not outcome.conflict:
        others = {path for path in differing(outcome.end, known.end) - known.masked if not _is_theirs(path, plan)}
        yield from _violations(outcome, "O1", others, known)
    yield from _more_restarts(outcome, known) if plan.has_hands else _more_writes(outcome, known)


def _is_theirs(path: str, plan: Plan) -> bool:
    return any(
        fnmatchcase(path, each) if each.endswith("*") else path == each or path.startswith((f"{each}.", f"{each}["))
        for each in plan.theirs
    )


def _more_writes(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    for key, count in sorted(outcome.summary.items()):
        usual = known.summary.get(key, 0)
        if usual and key.startswith("DELETE pods "):
            # while we were away, the StatefulSet may have brought back what was deleted only half-way
            usual += len(outcome.plan.faults)
        if "/pd/api/v1/store/" in key and any(isinstance(fault, Second) for fault in outcome.plan.faults):
            # two operators may ask for the same; PD takes a store out of service once
            usual *= 2
        if _MAKES_OR_ENDS.match(key) and count > usual:
            yield Violation("O2", outcome.plan.budget, f"{key}: {count} times instead of {usual}")


def _more_restarts(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """What others delete is created again; pods are not restarted for it."""
    for pod, count in sorted(outcome.restarts.items()):
        usual = known.restarts.get(pod, 0)
        if count > usual:
            yield Violation("R24", outcome.plan.budget, f"{pod} was made anew {count} times instead of {usual}")


def compare_with_direct(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """What the end has that it would not have, had the plan gone there directly, and the other way round (O6, I32)."""
    paths = differing(outcome.end, known.end) - known.masked
    yield from _violations(outcome, "O6", {path for path in paths if not _HISTORY.search(path)}, known)


def _violations(outcome: Outcome, rule: str, paths: Collection[str], known: Reference) -> Iterator[Violation]:
    at = outcome.plan.budget
    for path in sorted(paths)[:_SHOWN]:
        yield Violation(rule, at, f"{path} is {outcome.end.get(path)!r} and not {known.end.get(path)!r}")
    if len(paths) > _SHOWN:
        yield Violation(rule, at, f"and {len(paths) - _SHOWN} more differences")
