"""The programs that an installation puts on PATH, from the moment they start."""

import configparser
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _programs() -> dict[str, str]:
    """The path of each program's function, e.g. `cli.__main__:main`."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = parser["options.entry_points"]["console_scripts"].strip().splitlines()
    return {name.strip(): place.strip() for name, _, place in (line.partition("=") for line in lines)}


_INTERRUPTED = """\
import os, signal, sys

class CtrlC:
    def find_spec(name, *_):
        if name.split(".")[-1] in ("main", "check", "completion"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC)
from {module} import {function}
sys.argv[1:] = ["--help"]
sys.exit({function}())
"""

_FOREGROUND = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Starts a program as a shell does in the foreground, wherever the tests run."""


def _interrupted(program: str, *wrapper: str) -> subprocess.CompletedProcess[str]:
    """A program that is started, by a `wrapper` if any, and interrupted while it is imported."""
    module, _, function = _programs()[program].partition(":")
    command = [*wrapper, sys.executable, "-c", _INTERRUPTED.format(module=module, function=function)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", _programs())
def test_ctrl_c_ends_a_program_that_is_being_imported_without_a_trace(program: str) -> None:
    done = _interrupted(program, sys.executable, "-c", _FOREGROUND)
    assert (-signal.SIGINT, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_a_background_program_keeps_ignoring_ctrl_c() -> None:
    done = _interrupted("tidb-discovery", "/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh")
    assert (0, "") == (done.returncode, done.stderr)
    assert "tidb-discovery" in done.stdout


_HANGING = """\
import sys, types

module = types.ModuleType("hanging")

def main():
    import re, threading
    threading.Timer(0.2, print, ["looping"], {"file": sys.stderr, "flush": True}).start()
    while True:
        re.match("(a*)*b", "a" * 24)  # keeps the interpreter's lock for seconds

module.main = main
sys.modules["hanging"] = module
from ports.starting import start
start("hanging")
"""


@pytest.mark.slow
def test_sigabrt_prints_where_each_thread_of_a_hanging_program_is() -> None:
    process = subprocess.Popen([sys.executable, "-c", _HANGING], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as said:
        assert "looping" in said.readline()
        process.send_signal(signal.SIGABRT)
        stacks = said.read()
    assert (-signal.SIGABRT, True) == (process.wait(60), "in main" in stacks)


@pytest.mark.parametrize("library", ["cryptography", "pymysql", "grpc", "kubernetes"])
def test_an_operator_starts_without_a_library_that_few_clusters_need(library: str) -> None:
    loads = f"import sys, controller_manager.main; print({library!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loads], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "False\n" == done.stdout
