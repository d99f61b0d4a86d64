"""The snapshot that a log backup builds on (backup.md 3.9, 5.3)."""

from typing import Any

import pytest

from apis.backups import Backup
from controllers.backup import chains
from tests.apis.backups import S3, backup, by_br
from tests.controllers.backup.backups_world import BackupsWorld

GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def log(checkpoint: str = "300", *, truncated: str = "", spec: Any = None, **metadata: Any) -> Backup:
    """A log backup since TSO 100."""
    status = {"commitTs": "100", "logCheckpointTs": checkpoint, "logSuccessTruncateUntil": truncated}
    return backup(by_br(backupMode="log", **(spec or {})), status=status, **{"name": "log", "uid": "log", **metadata})


def snapshot(ts: int, kind: str = "Complete", *, spec: Any = None, wrong: str = "", **metadata: Any) -> Backup:
    """A snapshot of a TSO that has ended; `wrong`: for which reason its files are not verified."""
    verified = [{"type": "Verified", "status": "False", "reason": wrong}] if wrong else []
    status = {"commitTs": str(ts), "conditions": [{"type": kind, "status": "True"}, *verified]}
    return backup(by_br(**(spec or {})), status=status, **{"name": f"at-{ts}", "uid": f"{ts}", **metadata})


def names(backups: list[Backup]) -> list[str]:
    return [each.metadata.name for each in backups]


@pytest.mark.rule("backup-5.3")
def test_bases_are_complete_snapshots_within_the_log() -> None:
    """v1.6 counts failed ones, whose timestamp is 0."""
    others = [snapshot(0, "Failed"), snapshot(250, "Failed"), snapshot(99), snapshot(200), snapshot(100), snapshot(301)]
    assert ["at-100", "at-200"] == names(chains.bases(log(), others))
    assert ["at-200"] == names(chains.bases(log(truncated="150"), others))


@pytest.mark.parametrize(
    "other",
    [
        {"spec": {"br": {"cluster": "other"}}},
        {"spec": {"br": {"cluster": "basic", "clusterNamespace": "elsewhere"}}},
        {"spec": {"backupType": "db", "br": {"cluster": "basic", "db": "x"}}},
        {"spec": {"br": {"cluster": "basic", "options": ["--lastbackupts=150"]}}},
        {"wrong": "FilesDiffer"},
        GOING,
    ],
)
def test_partial_and_deleted_snapshots_and_snapshots_of_other_clusters_are_no_base(other: Any) -> None:
    assert [] == chains.bases(log(), [snapshot(200, **other)])


@pytest.mark.rule("backup-5.3")
def test_the_newest_snapshot_before_a_moment_is_its_base() -> None:
    others = [snapshot(110), snapshot(150), snapshot(200)]
    found = [chains.base_of(log(), others, since) for since in (109, 110, 199, 500)]
    assert [None, "at-110", "at-150", "at-200"] == [each and each.metadata.name for each in found]


@pytest.mark.rule("backup-3.9")
def test_the_last_base_is_needed_and_one_of_several_is_not() -> None:
    one, two, after = snapshot(110, **GOING), snapshot(200), snapshot(310)
    assert "log" == chains.needing(one, [log(), one]).metadata.name  # type: ignore[union-attr]
    assert chains.needing(one, [log(), one, two]) is None
    assert chains.needing(one, [log(), one, after]) is not None, "the log has not come that far"
    assert chains.needing(one, [log("310"), one, after]) is None
    assert chains.needing(one, [log(**GOING), one]) is None
    assert chains.needing(snapshot(99), [log()]) is None, "the log begins later"


@pytest.mark.parametrize(
    ("other", "needed"),
    [
        ({}, False),
        ({"wrong": "NotVerified"}, False),
        ({"wrong": "FilesDiffer"}, True),
        ({"spec": {"br": {"cluster": "basic", "options": ["--lastbackupts=110"]}}}, True),
        ({"spec": {"br": {"cluster": "basic", "options": ["--lastbackupts=0"]}}}, False),
        ({"spec": {"br": {"cluster": "basic", "options": ["--filter=shop.*"]}}}, True),
        ({"spec": {"tableFilter": ["shop.*"]}}, True),
    ],
)
@pytest.mark.rule("backup-3.9")
def test_a_base_that_lacks_something_takes_nobodys_place(other: Any, *, needed: bool) -> None:
    found = chains.needing(snapshot(110), [log(), snapshot(200, **other)])
    assert needed is (found is not None)


@pytest.mark.rule("backup-3.9")
def test_a_user_without_other_snapshots_keeps_the_filters() -> None:
    shop, more = {"tableFilter": ["shop.*"]}, {"tableFilter": ["shop.*", "lab.*"]}
    one, two, other = snapshot(110, spec=shop), snapshot(200, spec=shop), snapshot(210, spec=more)
    assert chains.needing(one, [log(), one]) is not None
    assert chains.needing(one, [log(), one, two]) is None
    assert chains.needing(one, [log(), one, other]) is not None
    assert chains.needing(one, [log(), one, snapshot(220)]) is None


@pytest.mark.rule("backup-3.9")
def test_an_unknown_checkpoint_keeps_a_snapshot() -> None:
    """A log backup with an unknown checkpoint may need every snapshot since it began."""
    assert chains.needing(snapshot(110), [log(""), snapshot(200)]) is not None


@pytest.mark.rule("backup-3.9")
def test_a_snapshot_and_its_files_are_removed_once_the_log_has_another_base(backups: BackupsWorld) -> None:
    for name, ts in (("old", "110"), ("new", "310")):
        backups.add(name, cleanPolicy="Delete", s3=S3 | {"prefix": name})
        backups.say("Complete", name, backupPath=f"s3://lab/{name}", commitTs=ts)
        backups.end(f"backup-{name}", "Complete", "CompletionsReached")
    backups.add("log", backupMode="log", s3=S3 | {"prefix": "log"})
    backups.write("log", commitTs="100", logCheckpointTs="300", phase="Running")
    backups.delete("old")
    _, reason, message = backups.condition("CleanFailed", "old")
    assert ("FilesInUse", True) == (reason, "log backup lab/log, which restores from no other snapshot" in message)
    backups.write("log", logCheckpointTs="320")
    backups.run(40)
    assert "clean-old" in backups.jobs()
