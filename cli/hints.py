"""What to type next, with the names under which this machine finds things."""

import shlex
import shutil
import sys
from pathlib import Path

_PROGRAM = "tidb-operator"


def program() -> str:
    """How to call this program once more: by its name where PATH has it, else as it was called."""
    if shutil.which(_PROGRAM):
        return _PROGRAM
    called = Path(sys.argv[0]).absolute()
    if called.name == _PROGRAM:
        return shlex.quote(str(called))
    return f"{shlex.quote(sys.executable)} -m cli"


def programs() -> Path | None:
    """The directory of this program, with `kubectl-tidb` beside it; None where it is not installed."""
    directory = Path(sys.executable).absolute().parent
    return directory if (directory / "kubectl-tidb").exists() else None


def source(directory: Path) -> str:
    """How to have a shell use the sandbox that wrote into a directory."""
    return f"source {shlex.quote(str(directory.absolute() / 'env'))}"
