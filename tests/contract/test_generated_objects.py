"""For any value of a field, both worlds accept the object, or both refuse it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from kube.resources import NAMESPACES
from ports.randomness import SeededRandomness
from tests.contract.generated_objects import Case, cases, drawn
from tests.contract.worlds import Answer, Side

_COUNT = int(os.environ.get("GENERATED_OBJECTS", "1500"))
_SEED = int(os.environ.get("GENERATED_OBJECTS_SEED", "0"))
_MUCH = 600
"""Characters of a message that are shown."""


@pytest.fixture(scope="module")
def all_cases() -> Sequence[Case]:
    """The objects of all kinds."""
    return tuple(cases())


@pytest.mark.controlplane
def test_both_worlds_take_and_refuse_the_same_objects(all_cases: Sequence[Case], sandbox: Side, real: Side) -> None:
    chosen = drawn(all_cases, _COUNT, SeededRandomness(_SEED))
    told = list(differences(chosen, sandbox, real))
    again = f"GENERATED_OBJECTS={_COUNT} GENERATED_OBJECTS_SEED={_SEED} shows them again"
    assert not told, "\n".join([f"{len(told)} of {len(chosen)} objects; {again}", *told])


def differences(chosen: Sequence[Case], sandbox: Side, real: Side) -> Iterator[str]:
    """The answers of each world about every object on which they disagree, or on which the sandbox fails."""
    with namespace_of_its_own(sandbox) as ours, namespace_of_its_own(real) as theirs:
        for case in chosen:
            said, expected = create(sandbox, ours, case), create(real, theirs, case)
            if is_taken(said) != is_taken(expected) or said.status >= 500:
                yield f"{case.name}\n  real:    {words(expected)}\n  sandbox: {words(said)}"


@contextmanager
def namespace_of_its_own(side: Side) -> Iterator[str]:
    """A namespace that is deleted afterwards."""
    name = side.new_namespace()
    try:
        yield name
    finally:
        side.client.delete(NAMESPACES, name)


def create(side: Side, namespace: str, case: Case) -> Answer:
    """Create the object, in thought only."""
    return side.send("POST", case.resource.path(namespace) + "?dryRun=All", case.body)


def is_taken(answer: Answer) -> bool:
    """True if it would have been created."""
    return answer.status < 300


def words(answer: Answer) -> str:
    """The status code, and the message of a refusal in one line."""
    message: str = answer.tree.get("message", "")
    return f"{answer.status} {' '.join(message.split())[:_MUCH]}".rstrip()


def test_each_kind_is_generated(all_cases: Sequence[Case]) -> None:
    kinds = {"ConfigMap", "Deployment", "Job", "PersistentVolumeClaim", "Pod", "Service", "StatefulSet"}
    assert kinds == {case.resource.kind for case in all_cases}
    assert all(case.resource.kind == case.body["kind"] for case in all_cases)


def test_no_two_cases_are_the_same(all_cases: Sequence[Case]) -> None:
    assert len({case.name for case in all_cases}) == len(all_cases)


def test_a_field_deep_in_a_pod_gets_valid_and_invalid_values(all_cases: Sequence[Case]) -> None:
    field = "spec.containers[0].livenessProbe.httpGet.scheme"
    bodies = [case.body for case in all_cases if case.title == "Pod" and case.field == field]
    probes = [body["spec"]["containers"][0]["livenessProbe"] for body in bodies]
    assert {"HTTP", "HTTPS", "http", ""} <= {probe["httpGet"]["scheme"] for probe in probes}


def test_a_seed_determines_the_draw_and_no_field_comes_twice_before_all_others(all_cases: Sequence[Case]) -> None:
    once, again, other = ([each.name for each in drawn(all_cases, 400, SeededRandomness(seed))] for seed in (0, 0, 1))
    assert once == again
    assert once != other
    assert 400 == len({(case.title, case.field) for case in drawn(all_cases, 400, SeededRandomness(0))})
