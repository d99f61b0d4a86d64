"""What the operator remembers between two reconciles, and what paces it: the modules and their lines are counted.

A map whose entries age is an `Ageing`; a back-off, a quiet period or a limit is a `Pace`. No module builds its own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from bench.memories import recorded

ROOT = Path(__file__).resolve().parents[1]

MODULES = """
controllers/cache_waits.py controllers/decisions.py controllers/memory.py controllers/own_write.py
controllers/status_pacing.py controllers/unheeded.py controllers/wait_log.py
dataplane/shared_answers.py dataplane/timeouts.py discovery/memory.py kube/admitted.py kube/contests.py
kube/event_correlation.py kube/failure_log.py kube/pruned.py kube/taken_names.py kube/throttle.py kube/url_backoff.py
member/lifecycle/refused_writes.py member/memory.py member/polling.py ports/ageing.py
ports/pace.py workqueue/rate_limiters.py
"""
"""The modules that pace, remember or suppress."""

MOST_LINES = 2733
"""The number of lines that they have. It may only fall, except for a memory that `bench/memories.json` defends."""

WITHOUT_FIGURES = {
    "controllers/decisions.py": "decides about `Decided` in member/memory.py",
    "controllers/memory.py": "holds the memories of one object",
    "controllers/unheeded.py": "asks a `KeptAnswer` of member/memory.py",
    "discovery/memory.py": "evidence: without it no cluster of several PD pods begins",
    "member/lifecycle/refused_writes.py": "notes `Refusals` of member/memory.py",
    "ports/ageing.py": "the map of the others",
    "ports/pace.py": "the policy of the others",
}
"""The modules that `bench/memories.json` does not name, and why."""

ROOMS = "apis controller_manager controllers dataplane discovery informers kube member meta ports scheduler workqueue"

BY_ANSWERS = "dataplane/timeouts.py"
"""The timeouts of requests, which double with the time that answers took."""

BY_DUE_TIME = "workqueue/rate_limiters.py"
"""The one other map in order of time: when waiting items get their tokens."""


def oldest_dropped(source: str) -> bool:
    """True if a module drops the oldest entry of a map itself."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "popitem"
        and any(each.arg == "last" for each in node.keywords)
        for node in ast.walk(ast.parse(source))
    )


def pause_doubled(source: str) -> bool:
    """True if a module doubles a value up to a limit itself: `min(2 * pause, longest)`, also with a power of two."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "min"
        and any(_is_doubled(each) for each in node.args)
        for node in ast.walk(ast.parse(source))
    )


def _is_doubled(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Pow | ast.Mult)
        and any(isinstance(side, ast.Constant) and side.value == 2 for side in (each.left, each.right))
        for each in ast.walk(node)
    )


def modules() -> Iterator[tuple[str, str]]:
    """The modules of the operator: path and source."""
    for room in ROOMS.split():
        for path in (ROOT / room).rglob("*.py"):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def test_what_remembers_and_paces_only_shrinks() -> None:
    assert MOST_LINES >= sum(len((ROOT / path).read_text("utf-8").splitlines()) for path in MODULES.split())


def test_what_remembers_and_paces_says_what_it_saves() -> None:
    measured = {name.partition(" ")[0] for name in recorded()}
    assert {*MODULES.split()} - measured == WITHOUT_FIGURES.keys()


def test_one_map_forgets_the_oldest() -> None:
    assert {BY_DUE_TIME, "ports/ageing.py"} == {path for path, source in modules() if oldest_dropped(source)}


def test_one_policy_doubles_pauses() -> None:
    assert {"ports/pace.py", BY_ANSWERS} == {path for path, source in modules() if pause_doubled(source)}
