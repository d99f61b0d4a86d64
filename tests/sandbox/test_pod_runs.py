"""The kubelet's memory of a pod."""

from dataclasses import fields

import pytest

from sandbox.dataplane.processes import Exit
from sandbox.kubelet.runs import ContainerRun, PodRun

_NOT_TOLD = {"outputs", "hook"}
"""Fields that no status shows."""


def _run() -> PodRun:
    return PodRun("node", "10.0.0.1", {"pd": ContainerRun("pd", "pd:v1")})


@pytest.mark.parametrize("name", [each.name for each in fields(ContainerRun) if each.name not in _NOT_TOLD])
def test_every_change_of_a_container_is_a_new_fact(name: str) -> None:
    run = _run()
    before = run.facts()
    setattr(run.containers["pd"], name, object())

    assert before != run.facts()


def test_ends_of_init_containers_are_new_facts() -> None:
    run = _run()
    seen = [run.facts()]
    run.init_ends.setdefault("init", []).append(Exit(1))
    seen.append(run.facts())
    run.init_ends["init"].append(Exit(1))
    seen.append(run.facts())
    run.initialized["init"] = "2026-01-01T00:00:00Z"
    seen.append(run.facts())
    run.init_failed["other"] = Exit(2)
    seen.append(run.facts())
    run.evicted = "out of room"
    seen.append(run.facts())

    assert len(seen) == len(set(seen))
