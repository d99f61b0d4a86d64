"""Comparisons with other runs (reliability.md 3).

O1 (with crashes also I31) and O2 compare with runs of the same plan without faults. O6 (also I32) compares with runs
that went to the same spec directly, if the plan made detours.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from msgspec.structs import replace

from simulate.engine.plan import Edit, Plan, Second
from simulate.engine.trees import difference, leaves, merged
from simulate.engine.worlds import CLUSTERS
from simulate.judge.end_state import Leaves, differing
from simulate.judge.judge import Violation
from simulate.run import Outcome

_SHOWN = 5

_LEFT_BEHIND = frozenset({"createPassword", "replicas", "storage", "storageVolumes", "volumeAttributesClassName"})
"""Differences that an undone change leaves: volumes outlive pods, never shrink, and keep their attributes; a generated
password stays the user's.
"""

_HISTORY = re.compile(
    r"^configmaps/basic-[a-z]+-\d+\.|\.conditions\[CertificatesValid\]|\.tiproxy\.members\.[^.]+\.info$"
)
"""Traces of the way: texts with which pods were started once, the use of certificates, and the checksum of TiProxy's
settings, which keep a label until the next restart."""

_MAKES_OR_ENDS = re.compile(r"(POST|DELETE) [a-z]+[.a-z0-9]* |DELETE .*/pd/api/v1/(store|members)/")
"""Creations and deletions of objects, stores and members; other POSTs to components are idempotent."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The result of a plan without faults. `masked` are the paths at which two such runs differed."""

    end: Leaves
    masked: frozenset[str]
    summary: Mapping[str, int]
    restarts: Mapping[str, int]


def reference(runs: Sequence[Outcome]) -> Reference:
    """The common part of several runs of one plan with different seeds."""
    first = runs[0]
    masked = {path for other in runs[1:] for path in differing(first.end, other.end)}
    keys = {key for outcome in runs for key in outcome.summary}
    summary = {key: max(outcome.summary.get(key, 0) for outcome in runs) for key in keys}
    pods = {pod for outcome in runs for pod in outcome.restarts}
    restarts = {pod: max(outcome.restarts.get(pod, 0) for outcome in runs) for pod in pods}
    return Reference(first.end, frozenset(masked), summary, restarts)


def direct_plan(plan: Plan) -> Plan | None:
    """The plan that goes directly to the final spec of one with detours; None without detours (O6)."""
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
    if any("storageVolumes" in entry for edit in plan.edits for entry in edit.spec.get("pdms") or ()):
        # a list is one leaf
        return None
    edits = (Edit(at=1.0, spec=net),) if net else ()
    return replace(plan, name=f"{plan.name} (direct)", seed=1, edits=edits, faults=())


def compare(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """Differences of the end from the reference (O1), and excess creations and deletions (O2, R24)."""
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
            # while the operator was down, the StatefulSet may have recreated something half-deleted
            usual += len(outcome.plan.faults)
        if "/pd/api/v1/store/" in key and any(isinstance(fault, Second) for fault in outcome.plan.faults):
            # two operators may send the same request; PD takes a store out of service once
            usual *= 2
        if _MAKES_OR_ENDS.match(key) and count > usual:
            yield Violation("O2", outcome.plan.budget, f"{key}: {count} times instead of {usual}")


def _more_restarts(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """Objects that other clients delete are recreated; pods are not restarted for it."""
    for pod, count in sorted(outcome.restarts.items()):
        usual = known.restarts.get(pod, 0)
        if count > usual:
            yield Violation("R24", outcome.plan.budget, f"{pod} was made anew {count} times instead of {usual}")


def compare_with_direct(outcome: Outcome, known: Reference) -> Iterator[Violation]:
    """Differences of the end from the direct plan's (O6, I32)."""
    paths = differing(outcome.end, known.end) - known.masked
    yield from _violations(outcome, "O6", {path for path in paths if not _HISTORY.search(path)}, known)


def _violations(outcome: Outcome, rule: str, paths: Collection[str], known: Reference) -> Iterator[Violation]:
    at = outcome.plan.budget
    for path in sorted(paths)[:_SHOWN]:
        yield Violation(rule, at, f"{path} is {outcome.end.get(path)!r} and not {known.end.get(path)!r}")
    if len(paths) > _SHOWN:
        yield Violation(rule, at, f"and {len(paths) - _SHOWN} more differences")
