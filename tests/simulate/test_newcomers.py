"""Manifests with mistakes: a Ready cluster or a message, never an exception.

All 10,000 are `python -m simulate manifests 0 10000`, a part of `make simulate`.
"""

from collections import Counter

import pytest

from cli import progress
from simulate.manifests import newcomers
from simulate.manifests.mutations import mutated
from simulate.manifests.newcomers import DEFECT, judge, judge_content
from tests.operator_world import SAMPLES

_FIRST = 50


@pytest.mark.slow
def test_no_mistake_in_a_manifest_causes_an_exception() -> None:
    ends: Counter[str] = Counter()
    for seed in range(_FIRST):
        verdict = judge(seed)
        assert verdict.outcome != DEFECT, f"python -m simulate manifests {seed} 1\n{verdict.told}"
        ends[verdict.outcome] += 1
    assert {"ready", "refused", "waits"} == set(ends), ends


def test_a_seed_is_one_manifest() -> None:
    assert mutated(3) == mutated(3)
    assert len({mutated(seed) for seed in range(20)}) > 15


def test_the_sample_becomes_ready_and_binary_content_is_refused() -> None:
    assert "ready" == judge_content((SAMPLES / "basic.yaml").read_bytes()).outcome
    assert "refused" == judge_content(b"\x7fELF\xff").outcome


def test_a_waiting_cluster_names_the_reason() -> None:
    verdict = judge_content((SAMPLES / "basic.yaml").read_bytes().replace(b"v8.5.2", b"v0.0.0-none"))
    assert "waits" == verdict.outcome
    assert "ImagePullBackOff" in verdict.told


def test_reports_a_planted_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_tc: object) -> list[progress.Row]:
        raise KeyError("planted")

    monkeypatch.setattr(progress, "rows", broken)
    verdict = judge_content((SAMPLES / "basic.yaml").read_bytes())
    assert DEFECT == verdict.outcome
    assert "planted" in verdict.told


def test_reports_an_empty_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newcomers, "waits_for", lambda _tc: " ")
    verdict = judge_content((SAMPLES / "basic.yaml").read_bytes().replace(b"v8.5.2", b"v0.0.0-none"))
    assert DEFECT == verdict.outcome
