"""A few plans at each run of the tests; `make simulate-slice` runs hundreds of all families, `make simulate` thousands.

Each part is a process of its own, which forks once for every plan.
"""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_SEEDS = 2
_EVERY_PLAN = 82
"""One in this many of the plans that once failed runs."""
_EVERY = 960
"""One in this many plans of these workloads runs."""
_PLANS = sorted((Path(__file__).parent / "plans").glob("*.yaml"))[::_EVERY_PLAN]
_WORKLOADS = ("bring-up-tiny", "tidb-config")
"""Each has to be run as it is before anything can be compared with it."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _simulate(*arguments: str) -> None:
    command = [sys.executable, "-m", "simulate", "--jobs", "1", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_random_edits_and_faults() -> None:
    _simulate("seeds", "0", str(_SEEDS))


def test_faults_at_the_writes_of_workloads() -> None:
    _simulate("sweep", *_WORKLOADS, "--every", str(_EVERY))


def test_scenarios_and_plans_that_once_failed() -> None:
    _simulate("run", *map(str, _PLANS))


@pytest.mark.rule("R21", "R24", "R28")
def test_plans_of_losses_and_edits_pass() -> None:
    _simulate("run", "loss/tidb-2.node.image@recorded", "return/tikv-4.node.config@recorded+150")
