"""A sample of plans at each run of the tests; `make simulate-slice` adds some, and `make simulate` runs thousands.

Each part is a process of its own, which forks once for every plan.
"""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_SEEDS = 2
_EVERY_PLAN = 82
"""Of the plans that once failed: 2."""
_EVERY = 960
"""Of the plans of these workloads each so manieth one is run."""
_EVERY_SPELLING = 440
"""Of the plans of the family `same`: 2."""
_EVERY_FIELD = 500
"""Of the plans of the families `field`, `mistake` and `joined`: 2."""
_EVERY_MIX = 1226
"""Of the mixes of components: 6."""
_EVERY_ORDER = 34
"""Of the plans of the family `order`: 2."""
_EVERY_BACKUP = 142
"""Of the plans of the family `backup`: 4."""
_EVERY_OTHER = 267
"""Of the random plans of the families `dm` and `other`: 3."""
_PLANS = sorted((Path(__file__).parent / "plans").glob("*.yaml"))[::_EVERY_PLAN]
_WORKLOADS = ("bring-up-tiny", "tikv-in", "pd-failover", "tidb-config")
"""Each has to be run as it is before anything can be compared with it."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _simulate(*arguments: str) -> None:
    command = [sys.executable, "-m", "simulate", "--jobs", "1", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_random_edits_and_faults() -> None:
    _simulate("seeds", "0", str(_SEEDS))


def test_random_edits_and_faults_of_other_kinds() -> None:
    _simulate("sweep", "dm", "other", "--every", str(_EVERY_OTHER))


def test_a_fault_at_writes_of_workloads() -> None:
    _simulate("sweep", *_WORKLOADS, "--every", str(_EVERY))


def test_what_once_failed_and_scenarios() -> None:
    _simulate("run", *map(str, _PLANS))


def test_R21_R24_R28_a_loss_and_an_edit() -> None:
    _simulate("run", "loss/tidb-2.node.image@recorded", "return/tikv-4.node.config@recorded+150")


def test_R22_another_spelling_of_the_same_writes_nothing() -> None:
    _simulate("sweep", "same", "--every", str(_EVERY_SPELLING))


def test_R22_R23_a_field_and_a_mistake_of_any_component_and_two_clusters_in_one() -> None:
    _simulate("sweep", "field", "mistake", "joined", "--every", str(_EVERY_FIELD))


def test_7_2_a_mix_of_components_is_upgraded_in_order() -> None:
    _simulate("sweep", "order", "--every", str(_EVERY_ORDER))


def test_7_4_a_backup_or_a_restore_in_the_middle_of_which_something_breaks() -> None:
    _simulate("sweep", "backup", "--every", str(_EVERY_BACKUP))


def test_every_mix_of_components_gets_ready_or_says_why_not() -> None:
    _simulate("mixes", "--every", str(_EVERY_MIX))


def test_R24_two_changes_of_a_component_that_replicates() -> None:
    _simulate("run", "pair/ticdc-upgrade+ticdc-scale-in@3")
