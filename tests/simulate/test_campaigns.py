"""Hundreds of plans at each run of the tests; `make simulate` runs thousands.

Each part is a process of its own, which forks once for every plan.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from simulate.workloads import WORKLOADS

_ROOT = Path(__file__).resolve().parents[2]
_PLANS = sorted((Path(__file__).parent / "plans").glob("*.yaml"))

_SEEDS = 50
"""Random plans of each part."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _simulate(*arguments: str) -> None:
    command = [sys.executable, "-m", "simulate", "--jobs", "1", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("first", range(0, 200, _SEEDS))
def test_random_edits_and_faults(first: int) -> None:
    _simulate("seeds", str(first), str(_SEEDS))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_fault_at_writes_of_a_workload(workload: str) -> None:
    _simulate("sweep", workload, "--every", "15")


@pytest.mark.parametrize("plan", _PLANS, ids=lambda path: path.stem)
def test_what_once_failed(plan: Path) -> None:
    _simulate("run", str(plan))
