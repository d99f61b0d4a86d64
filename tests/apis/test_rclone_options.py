"""The translation of rclone's options (backup.md 7.9)."""

import pytest

from apis.rclone_options import CopyOptions, UnknownOption, parse
from apis.validation.backups import validate_backup, validate_restore
from tests.apis.backups import ACCESS, S3, backup, restore


@pytest.mark.parametrize(
    ("options", "copied"),
    [
        ([], CopyOptions()),
        (["--s3-chunk-size=16M"], CopyOptions(16 << 20)),
        (["--s3-chunk-size", "1Gi", "--s3-upload-concurrency=8"], CopyOptions(1 << 30, 8)),
        (["--s3-chunk-size=5120"], CopyOptions(5 << 20)),
        (["--s3-chunk-size=6291456B"], CopyOptions(6 << 20)),
        (["-q", "--verbose", "--ignore-checksum=true", "--transfers", "4", "--stats=1s"], CopyOptions()),
    ],
)
@pytest.mark.rule("backup-7.9")
def test_translates_supported_options(options: list[str], copied: CopyOptions) -> None:
    assert copied == parse(options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--dry-run"],
            "--dry-run cannot be followed, since files are copied without rclone; remove it",
        ),
        (["--s3-chunk-size=1M"], "--s3-chunk-size: '1M' is no size of at least 5Mi"),
        (["--s3-chunk-size"], "--s3-chunk-size: '' is no size"),
        (["--s3-upload-concurrency=0"], "--s3-upload-concurrency: '0' is no number of at least 1"),
    ],
)
@pytest.mark.rule("backup-7.9")
def test_refuses_every_other_option_and_says_why(options: list[str], says: str) -> None:
    with pytest.raises(UnknownOption) as raised:
        parse(options)
    assert says in str(raised.value)
    s3 = {**S3, "options": options}
    made = {"from": ACCESS, "storageSize": "1Gi", "s3": s3}
    [problem] = validate_backup(backup(made))
    assert ("spec.s3.options", True) == (problem.field, says in str(problem))
    wanted = {"to": ACCESS, "storageSize": "1Gi", "s3": {**s3, "path": "bucket/x.tgz"}}
    assert ["spec.s3.options"] == [each.field for each in validate_restore(restore(wanted))]
