"""The first minutes with the project: `make run` in a newcomer's directory, interrupted, and twice at the same time."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually, pause

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900)]

_PATIENCE = 240.0
_MOST_MEMORY = 300 << 10
"""KiB that `make run`, pip included, may take."""
_PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "60"}
"""A locale without UTF-8, which Python is kept from replacing, in a narrow terminal."""
_MEASURING = """
import resource, signal, subprocess, sys
signal.signal(signal.SIGINT, lambda *_: None)
open(sys.argv[1], "w").close()
process = subprocess.Popen(sys.argv[2:])
code = process.wait()
with open(sys.argv[1], "w") as peak:
    peak.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code if code >= 0 else 128 - code)
"""
"""Runs a command and writes the peak memory of its processes. Linux counts the peak of the parent for its child."""
_NOT_OURS = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "LANG")


class Run:
    """`make run` without a terminal, in its own process group, with its own place for temporary files."""

    def __init__(self, project: Path, place: Path, *arguments: str) -> None:
        place.mkdir(parents=True)
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self._said, self._peak = place / "said", place / "peak"
        environ = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        with self._said.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MEASURING, str(self._peak), "make", "run", *arguments],
                cwd=project,
                env=environ | _PLAIN | {"TMPDIR": str(self.temporary)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        eventually(self._peak.exists, _PATIENCE)

    @property
    def said(self) -> str:
        """The output so far."""
        return self._said.read_text("utf-8", "backslashreplace")

    def interrupt(self) -> None:
        """Ctrl-C: the terminal signals the whole group."""
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self) -> tuple[int, int]:
        """Wait for the end: the exit code, and the most memory in KiB that one of its processes took."""
        try:
            eventually(lambda: self._process.poll() is not None, _PATIENCE, lambda: self.said[-2000:])
        finally:
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        return self._process.returncode, int(self._peak.read_text("ascii"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project at a path with spaces, with a .venv whose making was interrupted twice."""
    made = tmp_path_factory.mktemp("first minutes") / "a path, with spaces"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if name.startswith(("tests/", "docs/", ".")) or not (ROOT / name).is_file():
            continue
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, made / name)
    for number, seconds in enumerate((0.7, 3.0)):
        run = Run(made, made.parent / f"interrupted {number}")
        pause(seconds)
        run.interrupt()
        code, _ = run.end()
        assert code != 0
    return made


def test_make_run_gets_ready_wherever_it_is_typed(project: Path, tmp_path: Path) -> None:
    run = Run(project, tmp_path / "run", "EXIT_WHEN_READY=1")
    code, memory = run.end()
    assert 0 == code, run.said
    assert re.search(r"^Ready after [0-9.]+ s\.$", run.said, re.MULTILINE)
    assert "Traceback" not in run.said
    assert memory < _MOST_MEMORY
    assert [] == list(run.temporary.iterdir())


def test_two_at_once_get_ready(project: Path, tmp_path: Path) -> None:
    runs = [Run(project, tmp_path / name, "EXIT_WHEN_READY=1") for name in ("one", "other")]
    assert [0, 0] == [run.end()[0] for run in runs], [run.said for run in runs]


@pytest.mark.parametrize("seconds", [0.1, 0.4, 0.8, 1.5, 3.0, 6.0])
def test_an_interrupt_ends_it_at_any_moment_and_leaves_nothing(project: Path, tmp_path: Path, seconds: float) -> None:
    run = Run(project, tmp_path / "run")
    pause(seconds)
    run.interrupt()
    code, memory = run.end()
    assert code in (0, 2, 128 + signal.SIGINT), run.said
    # the interpreter reports an interrupt during its own start differently
    assert "Traceback" not in run.said or "Fatal Python error: init" in run.said
    assert memory < _MOST_MEMORY
    assert [] == list(run.temporary.iterdir())


def test_after_ready_the_output_follows_what_the_proposed_command_changes(project: Path, tmp_path: Path) -> None:
    run = Run(project, tmp_path / "run")
    eventually(lambda: "Ctrl-C ends it" in run.said, _PATIENCE, lambda: run.said)
    (command,) = (line.partition("#")[0].strip() for line in run.said.splitlines() if "one TiKV more" in line)
    sourced = re.search(r"source (.+?)    #", run.said)
    script = f". {sourced[1]}\n{command}" if sourced else command
    subprocess.run(["bash", "-c", script], check=True, capture_output=True, timeout=60)
    eventually(lambda: "tikv      2/2 ready" in run.said, _PATIENCE, lambda: run.said)
    run.interrupt()
    code, _ = run.end()
    assert code in (0, 128 + signal.SIGINT)
    assert "Traceback" not in run.said
