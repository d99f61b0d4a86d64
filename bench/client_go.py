"""The client-go program in bench/peers: build and results."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_PROGRAM = _ROOT / "build" / "bench-peers"
_BUILD_SECONDS = 1200.0
_RUN_SECONDS = 120.0


class ClientGoMissing(RuntimeError):
    """Raised if the program cannot be built here; the message names what is missing."""


def build(*, offline: bool = False) -> Path:
    """The program, rebuilt after changes; `offline` uses only Go's module cache.

    Raises ClientGoMissing without Go or its modules; CalledProcessError if it does not compile.
    """
    go = shutil.which("go")
    if go is None:
        raise ClientGoMissing("go was not found")
    environ = os.environ | ({"GOPROXY": "off"} if offline else {})
    command = [go, "build", "-o", str(_PROGRAM), "."]
    done = subprocess.run(  # noqa: S603  (our own program)
        command,
        cwd=_ROOT / "bench" / "peers",
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
    )
    if "GOPROXY=off" in done.stderr:
        raise ClientGoMissing("Go's module cache does not have client-go: run `make peers`")
    done.check_returncode()
    return _PROGRAM


def start(program: Path, kubeconfig: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start it against an API server; `seen` reads its results."""
    command = [str(program), "-kubeconfig", str(kubeconfig), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def seen(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Its results, once it has ended. Raises RuntimeError with its error output if it failed."""
    output, complaint = process.communicate(timeout=_RUN_SECONDS)
    if process.returncode:
        raise RuntimeError(complaint)
    found: dict[str, Any] = json.loads(output)
    return found


if __name__ == "__main__":
    build()
