"""No controller tries an object again without a reason: the code has no other way to ask for a retry."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FRAMES: Mapping[str, str] = {
    "controllers/outcomes.py": "returns the retry of outcomes, which conditions show",
    "controllers/frame.py": "the key is with another worker, or the cache does not show the last write yet",
}
"""Modules that may ask for a retry without an outcome, and why nothing is to be said of it."""

LOOKS: Mapping[str, str] = {
    "controllers/backup/logs.py": "the next look at the checkpoint of a log backup that runs",
    "controllers/backup_schedule/sync.py": "the time at which the next backup is due, which the status shows",
    "controllers/compact_backup/making.py": "a Job runs, and no event tells of its pods",
    "controllers/job_owners/starting.py": "a Job runs, and no event tells of its pods",
}
"""Modules of Jobs' owners that check an object again although it waits for nothing."""

_OWNERS = ("backup", "backup_schedule", "compact_backup", "job_owners", "restore")


def _calls(source: str, name: str, argument: str) -> Iterator[ast.Call]:
    """The calls of `name` with an argument of that name, or with any where it is empty."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    for call in calls:
        is_meant = isinstance(call.func, ast.Name) and call.func.id == name
        if is_meant and (not argument or argument in [each.arg for each in call.keywords]):
            yield call


def _modules(*rooms: str) -> Iterator[tuple[str, str]]:
    for room in rooms:
        for path in sorted((ROOT / "controllers" / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text()


def _users(name: str, argument: str, *rooms: str) -> set[str]:
    return {module for module, source in _modules(*rooms) if any(_calls(source, name, argument))}


def test_only_frames_request_a_retry_without_an_outcome() -> None:
    assert set(FRAMES) == _users("Result", "requeue_after", "")


def test_only_known_checks_request_a_retry_without_a_wait() -> None:
    assert set(LOOKS) == _users("Done", "retry_after", *_OWNERS)


def test_every_raised_wait_has_a_reason_and_a_sentence() -> None:
    bare = [
        f"{module}:{call.lineno}"
        for module, source in _modules("")
        for call in _calls(source, "RequeueError", "")
        if len(call.args) < 2 or any(isinstance(each, ast.Constant) and not each.value for each in call.args[:2])
    ]
    assert [] == bare


def test_a_wait_without_a_reason_would_be_found() -> None:
    planted = "def sync(ctx):\n    return Result(requeue_after=5.0)\n"
    assert [2] == [call.lineno for call in _calls(planted, "Result", "requeue_after")]
    assert [2] == [call.lineno for call in _calls(planted.replace("Result", "Done"), "Done", "requeue_after")]
