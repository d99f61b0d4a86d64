"""The life of a log backup as a live v1.6 recorded it, edit by edit: the same Jobs and the same status (3.8, 3.9)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from tests.controllers.backup.log_backups_world import AT, LogBackupsWorld
from tests.member.recordings import GOLDEN

START: Json = {"timeStarted": AT, "timeCompleted": AT, "commitTs": "448000000000000000", "backupPath": "s3://b/log"}


@pytest.fixture
def logs() -> Iterator[LogBackupsWorld]:
    world = LogBackupsWorld(cleanPolicy="Delete")
    try:
        yield world
    finally:
        world.stop()


def recorded(step: str) -> tuple[Json, list[str]]:
    """Status and Jobs of the log backup at a step."""
    path = GOLDEN / f"dev-bklife{step}.json"
    if not path.exists():
        pytest.skip("the recordings of v1.6 are not beside the repository")
    items = json.loads(path.read_text())["items"]
    (status,) = [each["status"] for each in items if each["kind"] == "Backup" and each["metadata"]["name"] == "logs"]
    jobs = [each["metadata"]["name"] for each in items if each["kind"] == "Job"]
    return status, sorted(each.replace("logs", "demo") for each in jobs if "logs" in each)


def shown(tree: Any) -> Any:
    """The status without write times and nulls, sub-command names on its own conditions, and our progress."""
    if isinstance(tree, list):
        return [shown(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    left_out = {"lastTransitionTime", "command", "logCheckpointTs", "timeSynced", "message"}
    return {key: shown(value) for key, value in tree.items() if value is not None and key not in left_out}


def ours(logs: LogBackupsWorld) -> tuple[Json, list[str]]:
    return shown(logs.status()), sorted(logs.jobs())


def expected(step: str) -> tuple[Json, list[str]]:
    status, jobs = recorded(step)
    return shown(status), jobs


@pytest.mark.rule("3.8")
def test_as_recorded(logs: LogBackupsWorld) -> None:
    assert expected("") == ours(logs)
    logs.do("log-start", "Prepare", "Running")
    logs.task.begin(448_000_000_000_000_000)
    logs.do("log-start", "Complete", **START)
    assert expected(".done") == ours(logs)
    logs.change(logTruncateUntil="2026-01-02T00:00:00Z")
    assert expected(".truncate") == ours(logs)
    logs.change(logStop=True, logTruncateUntil="")
    assert expected(".stop") == ours(logs)
