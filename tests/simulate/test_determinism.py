"""One seed, one run: in this process, in others, and whatever the hash seed is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulate.generate import generated
from simulate.plan import Plan
from simulate.run import prepare, run
from simulate.seeds import random_plan

_ROOT = Path(__file__).resolve().parents[2]


def _digest(plan: Plan) -> str:
    return run(prepare(plan), plan).digest


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace() -> None:
    plan = Plan(name="short", cluster="tiny", budget=10.0, faults=generated("tikv-out/crash-after-2").faults)

    assert _digest(plan) == _digest(plan)


@pytest.mark.slow
def test_the_trace_is_the_same_in_other_processes_and_for_other_hash_seeds() -> None:
    digests = {_digest_elsewhere("seed/7", hash_seed) for hash_seed in ("0", "1", "4711")}

    assert {_digest(random_plan(7))} == digests


def _digest_elsewhere(name: str, hash_seed: str) -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "simulate", "run", "--trace", name]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    found = re.search(r"trace ([0-9a-f]{32})", done.stdout)
    assert found, done.stdout + done.stderr
    return found.group(1)
