"""Suggestions for the next command, with names that work on this machine."""

import shlex
import shutil
import sys
from pathlib import Path

_PROGRAM = "tidb-operator"


def program() -> str:
    """How to call this program again: by its name if PATH has it, else as it was called."""
    if shutil.which(_PROGRAM):
        return _PROGRAM
    called = Path(sys.argv[0]).absolute()
    if called.name == _PROGRAM:
        return shlex.quote(str(called))
    return f"{shlex.quote(sys.executable)} -m cli"


def programs() -> Path | None:
    """The directory of this program and `kubectl-tidb`; None if it is not installed."""
    directory = Path(sys.executable).absolute().parent
    return directory if (directory / "kubectl-tidb").exists() else None


def source(directory: Path) -> str:
    """The command that lets a shell use the sandbox's directory."""
    return f"source {shlex.quote(str(directory.absolute() / 'env'))}"
