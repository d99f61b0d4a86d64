"""A failed command reports the cause in one sentence, with an exit code."""

import errno
import io
import signal

import pytest

from cli.failures import Failure, plainly


def _raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return plainly(command)


_TOLD = {
    "what we know": (Failure("a.yaml: is a directory"), "tidb-operator: a.yaml: is a directory\n"),
    "a file that can't be written": (
        PermissionError(errno.EACCES, "Permission denied", "/x"),
        "/x: Permission denied\n",
    ),
    "a full disk": (OSError(errno.ENOSPC, "No space left on device"), "can't write to standard output: No space left"),
}


@pytest.mark.parametrize("case", _TOLD)
def test_a_failure_prints_one_line_and_exits_with_1(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    error, told = _TOLD[case]
    assert 1 == _raising(error)
    said = capsys.readouterr().err
    assert told in said
    assert 1 == said.count("\n")


@pytest.mark.parametrize(("error", "code"), [(BrokenPipeError(), 141), (KeyboardInterrupt(), 130), (SystemExit(2), 2)])
def test_prints_nothing_if_the_user_ends_the_command(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code == _raising(error)
    assert "" == capsys.readouterr().err


def test_ctrl_c_ends_the_command_with_130_and_restores_the_default_handler() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)

    def command() -> int:
        signal.raise_signal(signal.SIGINT)
        return 0

    try:
        assert 130 == plainly(command)
        assert signal.SIG_DFL == signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        _raising(ZeroDivisionError())


def test_a_failed_flush_of_the_output_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.dup2", lambda _from, _to: None)
        patch.setattr("sys.stdout", Full())
        assert 1 == plainly(lambda: 0)
    assert "No space left on device" in capsys.readouterr().err
