"""The check that a log contains the span of a CompactBackup (backup.md 6), in every order of the moments."""

from itertools import combinations_with_replacement, product

import pytest

from apis.backup_defaulting import with_compact_defaults
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.problem import Problem
from controllers.compact_backup.making import obstacle
from member.outcome import Wait
from tests.apis.backups import S3, tree
from tests.controllers.restore.test_log_range import log, snapshot

_BEGINS, _ENDS = 200, 400
_SPANS = list(combinations_with_replacement((100, _BEGINS, 300, _ENDS, 500), 2))


def span(start: int, end: int, **shards: object) -> CompactBackup:
    spec = {"br": {"cluster": "demo"}, "s3": S3, "startTs": str(start), "endTs": str(end or ""), **shards}
    return with_compact_defaults(decode(tree("CompactBackup", spec), CompactBackup))


def verdict(compact: CompactBackup, *backups: Backup) -> str:
    found = obstacle(compact, backups)
    return found.field if isinstance(found, Problem) else "wait" if isinstance(found, Wait) else "covered"


def expected(start: int, end: int, phase: str) -> str:
    if end < _BEGINS:
        return "spec.endTs"
    if phase == "Stopped":
        return "spec.startTs" if start > _ENDS else "covered"
    return "wait" if end > _ENDS else "covered"


@pytest.mark.parametrize(("asked", "phase"), list(product(_SPANS, ("Running", "Paused", "Stopped"))))
@pytest.mark.rule("backup-6")
def test_a_span_must_be_in_the_log(asked: tuple[int, int], phase: str) -> None:
    assert expected(*asked, phase) == verdict(span(*asked), log(phase))


@pytest.mark.rule("backup-6")
def test_a_log_that_has_written_nothing_is_awaited() -> None:
    found = obstacle(span(300, 400), [log(logCheckpointTs="")])
    assert isinstance(found, Wait)
    assert found.what.endswith("it has written nothing yet")


@pytest.mark.rule("backup-6")
def test_a_log_begins_where_it_was_truncated() -> None:
    assert "spec.endTs" == verdict(span(200, 250), log(logSuccessTruncateUntil="300"))


@pytest.mark.parametrize(
    "other",
    [log(s3=S3 | {"endpoint": "http://elsewhere"}), log(backupPath="s3://lab/other"), log(commitTs=""), snapshot(9)],
)
@pytest.mark.rule("backup-6")
def test_nothing_is_known_of_a_log_without_its_backup(other: Backup) -> None:
    assert "covered" == verdict(span(100, 100), other)


@pytest.mark.rule("backup-6")
def test_one_of_several_logs_at_a_place_is_enough() -> None:
    assert "covered" == verdict(span(100, 150), log(), log(begins=100))


@pytest.mark.rule("CMP-2")
@pytest.mark.parametrize(
    ("start", "phase", "expected"),
    [
        (100, "Running", "covered"),
        (500, "Running", "wait"),
        (500, "Stopped", "spec.startTs"),
        (300, "Stopped", "covered"),
    ],
)
def test_shards_without_an_end_need_the_start_in_the_log(start: int, phase: str, expected: str) -> None:
    assert expected == verdict(span(start, 0, mode="sharded", shardCount=2), log(phase))
