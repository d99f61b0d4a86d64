"""The commands of docs/real-servers.md, with a small program in the place of TiDB's: its servers are simulated."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.guides import KUBECTL, commands
from tests.e2e.operators import ROOT, clean_environment
from tests.e2e.waiting import eventually
from tests.sandbox.real_pods import machine_or_skip, program

GUIDE = ROOT / "docs" / "real-servers.md"

_BLOCK = re.compile(r"^ *```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("for each in pd tikv tidb br; do tiup install", "kubectl tidb sql")
"""TiUP is not ours, and the simulated TiDB has no functions: tests/sandbox/test_port_forward.py asks MariaDB."""
_OPERATOR = "tidb-operator run"
_LASTING = ("tidb-operator sandbox --", _OPERATOR)
_ANY_PORT = "--metrics-addr=127.0.0.1:0"
"""The operator's own port may belong to an operator of another test."""


@pytest.mark.slow
@pytest.mark.thorough
def test_the_commands_of_the_guide_work_and_its_cluster_is_kept(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    binaries, keep = tmp_path / "components", tmp_path / "tidb"
    binaries.mkdir()
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    program(binaries, "tool", "sleep 1000")
    machine_or_skip(binaries, as_root=os.geteuid() == 0).close()
    text = GUIDE.read_text("utf-8").replace("~/.tiup/components", str(binaries)).replace("~/tidb", str(keep))
    typed = [command for block in _BLOCK.findall(text) for command, _ in commands(_dedented(block))]
    with ExitStack() as stack:
        for command in typed:
            if command.startswith(_LASTING):
                stack.enter_context(running(f"{command} {_ANY_PORT}" if command == _OPERATOR else command, tmp_path))
            elif not command.startswith(_ELSEWHERE):
                _type(command, tmp_path)
    assert {_ELSEWHERE, _LASTING} == {
        tuple(start for start in starts if any(command.startswith(start) for command in typed))
        for starts in (_ELSEWHERE, _LASTING)
    }
    (tmp_path / ".sandbox" / "env").unlink()
    with running(next(command for command in typed if command.startswith(_LASTING)), tmp_path):
        assert "v8.5.3" in _type("kubectl get tidbcluster basic -o yaml", tmp_path)


@contextmanager
def running(command: str, place: Path) -> Iterator[None]:
    """A command in a terminal of its own, which Ctrl-C ends."""
    (place / ".sandbox" / "env").unlink(missing_ok=True) if "sandbox" in command else None
    with subprocess.Popen(_shell(f"exec {command}"), cwd=place, env=_environment(), process_group=0) as process:
        try:
            eventually((place / ".sandbox" / "env").exists, 60.0)
            yield
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(30)


def _type(command: str, place: Path) -> str:
    done = subprocess.run(
        _shell(command), cwd=place, env=_environment(), capture_output=True, text=True, timeout=280, check=False
    )
    assert 0 == done.returncode, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _shell(command: str) -> list[str]:
    return ["sh", "-c", f"[ ! -e .sandbox/env ] || . .sandbox/env >&2; {command}"]


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{KUBECTL.parent}:{os.environ['PATH']}"
    return clean_environment() | {"PATH": path, "PYTHONPATH": str(ROOT)}


def _dedented(block: str) -> str:
    return "\n".join(line.strip() for line in block.splitlines())
