"""Refusals in both worlds, with their messages: an operator shows them as conditions."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from sandbox.apiserver.kinds import INGRESSES
from tests.contract.refused_changes import CHANGED
from tests.contract.refused_objects import OBJECTS
from tests.contract.refused_pods import PODS as REFUSED_PODS
from tests.contract.worlds import Answer, Side, eventually

_PATHS = {
    each.kind: each.path
    for each in (
        CONFIG_MAPS,
        DEPLOYMENTS,
        INGRESSES,
        JOBS,
        PERSISTENT_VOLUME_CLAIMS,
        PODS,
        ROLE_BINDINGS,
        ROLES,
        SECRETS,
        SERVICES,
        STATEFUL_SETS,
    )
}
_DRY = "?dryRun=All"
CREATED = {**REFUSED_PODS, **OBJECTS}


@pytest.fixture(scope="module")
def place(world: Side) -> Iterator[str]:
    """A namespace for all of them: no refused object remains there."""
    name = world.new_namespace()
    yield name
    world.send("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def places(sandbox: Side, real: Side) -> list[tuple[Side, str]]:
    """Such a namespace in each world."""
    return [(side, side.new_namespace()) for side in (sandbox, real)]


def create(side: Side, namespace: str, body: Json) -> Answer:
    """Create an object as a dry run."""
    return side.send("POST", _PATHS[body["kind"]](namespace) + _DRY, body)


def change(side: Side, namespace: str, body: Json, patch: Json) -> Answer:
    """Create an object and change it, in thought only."""
    path = _PATHS[body["kind"]](namespace)
    made = side.send("POST", path, body)
    assert 201 == made.status, made.text
    object_path = f"{path}/{made.tree['metadata']['name']}"
    answer = side.send("PATCH", object_path + _DRY, patch, content_type="application/merge-patch+json")
    side.send("DELETE", object_path, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
    eventually(lambda: 404 == side.send("GET", object_path).status)
    return answer


def verdict(answer: Answer) -> tuple[int, str]:
    """The status, and the fields that the causes name."""
    causes = (answer.tree.get("details") or {}).get("causes") or ()
    # a real server says some things twice when it patches
    return answer.status, " ".join(dict.fromkeys(cause["field"] for cause in causes))


def words(answer: Answer, namespace: str) -> str:
    """The message, without the difference that some end with and without names made up."""
    text: str = answer.tree.get("message", "").partition("\n")[0]
    return text.replace(namespace, "NAMESPACE")


@pytest.mark.parametrize("name", CREATED)
def test_an_object_is_taken_or_refused_by_field(world: Side, place: str, name: str) -> None:
    status, fields, body = CREATED[name]
    assert (status, fields) == verdict(create(world, place, body))


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_taken_or_refused_by_field(world: Side, place: str, name: str) -> None:
    status, fields, body, patch = CHANGED[name]
    assert (status, fields) == verdict(change(world, place, body, patch))


@pytest.mark.controlplane
@pytest.mark.parametrize("name", CREATED)
def test_both_worlds_refuse_in_the_same_words(places: list[tuple[Side, str]], name: str) -> None:
    said, expected = [words(create(side, namespace, CREATED[name][2]), namespace) for side, namespace in places]
    assert expected == said


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_namespaces_that_a_cluster_begins_with_may_not_be_deleted(world: Side, name: str) -> None:
    answer = world.send("DELETE", NAMESPACES.path(name=name))
    told = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert (403, told) == (answer.status, answer.tree["message"])
