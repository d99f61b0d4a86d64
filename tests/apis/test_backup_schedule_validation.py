"""Mistakes of a BackupSchedule are reported by field, and its templates obey the rules of the created objects (5)."""

from typing import Any

import pytest
import yaml

from apis.backup_defaulting import with_schedule_defaults
from apis.backup_schedules import BackupSchedule
from apis.crd import DIRECTORY
from apis.decoding import decode
from apis.shared import Json
from apis.validation.backup_schedules import validate_backup_schedule
from tests.apis.backups import ACCESS, S3, by_br, tree

LOG = by_br(backupMode="log")
COMPACTION: Json = {"br": {"cluster": "basic"}, "s3": S3}
EXPORT: Json = {"from": ACCESS, "s3": S3}


def problems(name: str = "nightly", **spec: Any) -> list[str]:
    """The problems of a schedule."""
    given = {"schedule": "0 3 * * *", "backupTemplate": by_br(), **spec}
    found = validate_backup_schedule(
        with_schedule_defaults(decode(tree("BackupSchedule", given, name=name), BackupSchedule))
    )
    return [str(each) for each in found]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"maxBackups": 0, "maxReservedTime": "168h"},
        {"backupTemplate": EXPORT},
        {"logBackupTemplate": LOG, "compactBackupTemplate": COMPACTION, "compactInterval": "24h"},
        {"backupTemplate": {}, "br": {"cluster": "basic"}, "s3": S3},
        {"minCompactStartTs": "2024-05-01T10:00:00Z"},
    ],
)
@pytest.mark.rule("5")
def test_accepts_complete_schedules(spec: Json) -> None:
    assert [] == problems(**spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"schedule": "often"},
            'spec.schedule: "often": has 1 fields in place of 5: minute, hour,',
        ),
        ({"maxReservedTime": "7d"}, 'spec.maxReservedTime: "7d": must be a duration such as 168h or 90m'),
        ({"maxReservedTime": "2562048h"}, 'spec.maxReservedTime: "2562048h": must be a duration such as 168h or 90m'),
        ({"maxReservedTime": "-1h"}, 'spec.maxReservedTime: "-1h": must be more than 0'),
        ({"compactInterval": "0s"}, 'spec.compactInterval: "0s": must be more than 0'),
        ({"backupTemplate": LOG}, 'spec.backupTemplate.backupMode: "log": must be snapshot; move a log backup to'),
        ({"backupTemplate": {"s3": S3}}, "spec.backupTemplate.from.host: is required, since spec.backupTemplate.br is"),
        ({"backupTemplate": {"br": {"cluster": "a"}}}, "spec.backupTemplate: names no storage; set s3, gcs, azblob"),
        ({"logBackupTemplate": by_br()}, 'spec.logBackupTemplate.backupMode: "snapshot": must be log'),
        ({"logBackupTemplate": LOG | {"s3": {"provider": "aws"}}}, "spec.logBackupTemplate.s3.bucket: is required"),
        (
            {"compactBackupTemplate": COMPACTION, "compactInterval": "1h"},
            "spec.compactBackupTemplate: has nothing to compact; add spec.logBackupTemplate, or remove it",
        ),
        (
            {"compactBackupTemplate": COMPACTION, "logBackupTemplate": LOG},
            "spec.compactInterval: is required with spec.compactBackupTemplate; give a duration such as 24h",
        ),
        (
            {
                "compactBackupTemplate": COMPACTION | {"concurrency": 0},
                "logBackupTemplate": LOG,
                "compactInterval": "1h",
            },
            "spec.compactBackupTemplate.concurrency: 0: must be at least 1",
        ),
        (
            {
                "compactBackupTemplate": COMPACTION,
                "logBackupTemplate": LOG,
                "compactInterval": "1h",
                "minCompactStartTs": "soon",
            },
            'spec.minCompactStartTs: "soon": must be a TSO, or a time such as 2024-05-01T10:00:00Z',
        ),
    ],
)
@pytest.mark.rule("5")
def test_names_what_cannot_work_and_the_way_out(spec: Json, expected: str) -> None:
    (first, *_) = problems(**spec)
    assert first.startswith(expected)


def test_the_sample_is_valid() -> None:
    sample = yaml.safe_load((DIRECTORY.parent / "samples" / "backup-schedule.yaml").read_text(encoding="utf-8"))
    assert [] == validate_backup_schedule(with_schedule_defaults(decode(sample, BackupSchedule)))


@pytest.mark.rule("5")
def test_refuses_a_name_that_leaves_no_room_for_the_time() -> None:
    assert [] == problems("a" * 36)
    (said,) = problems("a" * 37)
    assert said.endswith("is too long for the names of Jobs, which have a time besides; use at most 36 characters")
    compacting = {"logBackupTemplate": LOG, "compactBackupTemplate": COMPACTION, "compactInterval": "24h"}
    assert 1 == len(problems("a" * 36, **compacting))


@pytest.mark.rule("5")
def test_a_template_inherits_from_the_schedule_unless_it_has_its_own_value() -> None:
    def made(**template: Any) -> BackupSchedule:
        spec = {"schedule": "@daily", "br": {"cluster": "a"}, "s3": S3, "backupTemplate": template}
        return with_schedule_defaults(decode(tree("BackupSchedule", spec), BackupSchedule))

    filled = made().spec.backup_template
    assert filled.br
    assert ("a", ["s3"]) == (filled.br.cluster, list(filled.providers))
    own = made(br={"cluster": "b"}, gcs={"projectId": "p", "bucket": "b"}).spec.backup_template
    assert own.br
    assert ("b", ["gcs"]) == (own.br.cluster, list(own.providers))
    assert made(**{"from": ACCESS}).spec.backup_template.br is None
