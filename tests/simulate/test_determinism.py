"""One seed gives one run: in this process, in others, with any hash seed, and with interleaved threads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulate.engine.plan import Crash, Edit, Plan, Second, dump
from simulate.families.generate import generated
from simulate.families.seeds import random_plan
from simulate.run import prepare, run

_ROOT = Path(__file__).resolve().parents[2]

_TWO_OPERATORS = Plan(
    name="two operators",
    cluster="tiny",
    budget=10.0,
    edits=(Edit(at=1.0, spec={"tikv": {"replicas": 2}}),),
    faults=(Second(at=0.0, seconds=8.0), Crash(write=4, when="after")),
    reference=False,
)


def _digest(plan: Plan) -> str:
    return run(prepare(plan), plan).digest


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace() -> None:
    plan = Plan(name="short", cluster="tiny", budget=10.0, faults=generated("tikv-out/crash-after-2").faults)

    assert _digest(plan) == _digest(plan)


@pytest.mark.slow
def test_two_operators_give_the_same_trace_for_the_same_seed() -> None:
    assert _digest(_TWO_OPERATORS) == _digest(_TWO_OPERATORS)


@pytest.mark.slow
def test_traces_do_not_depend_on_the_process_or_its_hash_seed(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(dump(_TWO_OPERATORS), encoding="utf-8")
    digests = {_digests_elsewhere(hash_seed, "seed/7", str(path)) for hash_seed in ("0", "4711")}

    assert {(_digest(random_plan(7)), _digest(_TWO_OPERATORS))} == digests


def _digests_elsewhere(hash_seed: str, *names: str) -> tuple[str, ...]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "simulate", "--jobs", "1", "run", "--trace", *names]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    found = re.findall(r"trace ([0-9a-f]{32})", done.stdout)
    assert len(names) == len(found), done.stdout + done.stderr
    return tuple(found)
