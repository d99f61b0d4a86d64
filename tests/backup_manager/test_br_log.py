"""BR's log and `backupmeta` (backup.md 7.4 to 7.7)."""

import pytest

from backup_manager.backup_meta import BackupMeta, Unreadable, read_meta, readable
from backup_manager.br_log import ErrorLines, OperationLine, ProgressLine, operation_in, progress_in
from tests.backup_manager.worlds import meta_bytes

LINE = (
    '[2024/05/06 07:08:09.123 +08:00] [INFO] [progress.go:160] [progress] [step="Full Backup"] '
    '[progress=12.34%] [count="12 / 97"] [speed="3 p/s"] [elapsed=1s] [remaining=7s]'
)


@pytest.mark.rule("backup-7.7")
def test_progress_is_read_with_its_speed() -> None:
    assert ProgressLine("Full Backup", 12.34, "3 p/s") == progress_in(LINE)
    assert ProgressLine("Checksum", 100.0) == progress_in("[progress] [step=Checksum] [progress=100.00%]")


@pytest.mark.parametrize("line", ["", "progress", '[progress] [step="x"] [progress=abc%]', "[progress] [progress=1%]"])
@pytest.mark.rule("backup-7.7")
def test_other_lines_have_no_progress(line: str) -> None:
    assert progress_in(line) is None


@pytest.mark.rule("backup-7.7")
def test_progress_is_at_most_100_percent() -> None:
    assert ProgressLine("x", 100.0) == progress_in('[progress] [step="x"] [progress=100.20%]')


@pytest.mark.parametrize(
    ("token", "started"),
    [
        ("[BR operation started]", "2024/05/06 07:08:09.123 +08:00"),
        ('["BR operation started"]', "2024-05-06T07:08:09+08:00"),
    ],
)
@pytest.mark.rule("backup-7.5")
def test_an_operation_is_read_in_both_notations(token: str, started: str) -> None:
    line = f'[INFO] {token} [operation_id=abc-1] [operation_started_at="{started}"] [command="restore full"]'
    assert OperationLine("abc-1", "2024-05-05T23:08:09Z", "restore full") == operation_in(line)


@pytest.mark.rule("backup-7.5")
def test_an_operation_without_id_is_ignored_and_one_without_time_is_kept() -> None:
    assert operation_in("[BR operation started] [command=x]") is None
    assert OperationLine("a", "", "x") == operation_in("[BR operation started] [operation_id=a] [command=x]")


@pytest.mark.rule("backup-7.6")
def test_errors_are_all_of_stderr_and_bad_lines_of_stdout() -> None:
    errors = ErrorLines()
    errors.add("[INFO] fine", is_error_stream=False)
    errors.add("[ERROR] bad", is_error_stream=False)
    errors.add("any", is_error_stream=True)
    errors.add("  ", is_error_stream=True)
    assert "[ERROR] bad\nany" == str(errors)


@pytest.mark.rule("backup-7.6")
def test_of_many_errors_the_last_are_kept_and_the_others_counted() -> None:
    errors = ErrorLines()
    for number in range(100_000):
        errors.add(f"[FATAL] {number}", is_error_stream=False)
    text = str(errors)
    assert len(text) < 17_000
    assert text.endswith("[FATAL] 99999")
    assert text.startswith("(9")


@pytest.mark.rule("backup-7.4")
def test_backupmeta_has_versions_and_size() -> None:
    assert BackupMeta(1, 449_000_000_000, 8_200_000) == read_meta(meta_bytes())


@pytest.mark.rule("backup-7.4")
def test_without_a_size_counts_the_message_and_its_files() -> None:
    content = meta_bytes(size=0)
    assert len(content) + 5 == read_meta(content).size


@pytest.mark.rule("backup-7.4")
def test_rejects_or_reads_every_truncation() -> None:
    content = meta_bytes()
    for length in range(len(content)):
        try:
            assert 449_000_000_000 == read_meta(content[:length]).end_version
        except Unreadable:
            continue


@pytest.mark.parametrize("content", [b"", b"\x00" * 20, b"\xff" * 40, b"not protobuf at all", meta_bytes(end=0)])
@pytest.mark.rule("backup-7.4")
def test_rejects_a_malformed_or_empty_backupmeta(content: bytes) -> None:
    with pytest.raises(Unreadable):
        read_meta(content)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (9, "9 B"),
        (10, "10 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (8_200_000, "8.2 MB"),
        (82_000_000, "82 MB"),
        (82_854_982, "83 MB"),
        (1_500_000_000_000, "1.5 TB"),
        (2**63, "9.2 EB"),
    ],
)
@pytest.mark.rule("backup-7.4")
def test_sizes_are_shown_as_v1_6_shows_them(size: int, text: str) -> None:
    assert text == readable(size)
