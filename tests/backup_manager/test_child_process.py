"""Child processes, read line by line (backup.md 7.6)."""

import os
import sys
import threading
from pathlib import Path

import pytest

from backup_manager.child_process import CannotStart, SystemLauncher
from ports.stopping import Stop

pytestmark = pytest.mark.slow

Lines = list[tuple[str, bool]]


def run(program: str, stop: Stop | None = None, **environ: str) -> tuple[int, Lines]:
    lines: Lines = []
    command = [sys.executable, "-c", program]
    code = SystemLauncher().run(command, environ, lambda line, is_error: lines.append((line, is_error)), stop or Stop())
    return code, lines


def test_lines_of_both_streams_arrive_as_they_are_printed() -> None:
    code, lines = run(
        "import sys, time\n"
        "print('one', flush=True); print('error', file=sys.stderr, flush=True); print('two\\r\\nlast', end='')"
    )
    assert 0 == code
    assert ["one", "two", "last"] == [line for line, is_error in lines if not is_error]
    assert ["error"] == [line for line, is_error in lines if is_error]


def test_reports_exit_code_and_signal() -> None:
    assert 3 == run("raise SystemExit(3)")[0]
    assert -9 == run("import os; os.kill(os.getpid(), 9)")[0]


def test_a_program_gets_the_environment_that_it_is_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_PROCESS", "1")
    _, lines = run("import os; print(sorted(name for name in os.environ if 'OF_' in name))", OF_CHILD="1")
    assert [("['OF_CHILD']", False)] == lines


def test_reads_long_and_binary_output() -> None:
    _, lines = run(r"import sys; sys.stdout.buffer.write(b'x' * 3_000_000 + b'\n\xff\n' * 100_000)")
    assert 3_000_000 == sum(len(line) for line, _ in lines if line.startswith("x"))
    assert 99_999 <= sum(line == "\ufffd" for line, _ in lines)


def test_a_stop_sends_sigterm_and_waits_for_the_end() -> None:
    stop = Stop()
    lines: Lines = []

    def on_line(line: str, is_error: bool) -> None:
        lines.append((line, is_error))
        if line == "ready":
            threading.Thread(target=stop.set).start()

    program = (
        "import os, signal, sys, time\n"
        "def end(*_): os.write(1, b'ending\\n'); sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, end); print('ready', flush=True); time.sleep(60)"
    )
    code = SystemLauncher().run([sys.executable, "-c", program], {}, on_line, stop)
    assert (7, ("ending", False)) == (code, lines[-1])


def test_names_a_missing_or_forbidden_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for name in ("missing", "text"):
        with pytest.raises(CannotStart, match=rf"cannot start .*/{name}: .*; is the init container's volume mounted"):
            SystemLauncher().run([str(tmp_path / name)], {}, lambda _line, _is_error: None, Stop())


def test_an_internal_failure_leaves_no_program_behind() -> None:
    pids: list[int] = []

    def fail(line: str, _is_error: bool) -> None:
        pids.append(int(line))
        raise KeyError(line)

    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with pytest.raises(KeyError):
        SystemLauncher().run([sys.executable, "-c", program], {}, fail, Stop())
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
