"""Fields that the operator does not know are named in the status of objects of every kind, once, and change no pod."""

from typing import Any

import msgspec
import pytest
from msgspec import inspect

from apis.crd import KINDS as DEFINED
from apis.model_types import below, shape_of, shaped, type_of
from kube.objects import Json, condition_of
from kube.resources import PODS, STATEFUL_SETS, Resource
from ports.clock import FakeClock
from simulate.manifests.rich_specs import KINDS, rich_spec
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_MODELS = {kind.name: kind.model for kind in DEFINED}
_MISSPELLED: Json = {"podAntiAffinity": {"requiredDuringScheduling": [{"topologyKey": "kubernetes.io/hostname"}]}}
_NAMED = (
    "Kubernetes ignores the fields that it does not know: "
    "spec.tikv.affinity.podAntiAffinity.requiredDuringScheduling: unknown field; "
    "did you mean requiredDuringSchedulingIgnoredDuringExecution?"
)


def _misspell(value: Any, kind: inspect.Type, path: str) -> str:
    """Double the last letter of a field of the first tree of Kubernetes; return its path, empty without such a tree."""
    if shape_of(kind) and isinstance(value, dict) and value:
        name = next(iter(value))
        value[f"{name}{name[-1]}"] = value.pop(name)
        return f"{path}.{name}{name[-1]}: unknown field; did you mean {name}?"
    return next(filter(None, (_misspell(*each) for each in below(value, kind, path))), "")


def _add_newer_fields(value: Any, kind: inspect.Type, *, is_inside: bool = False) -> int:
    """Give every object in the trees of Kubernetes a field that is newer than this operator; return their number."""
    is_inside = is_inside or shape_of(kind) is not None
    kind = shaped(kind)
    parts = list(below(value, kind, ""))
    added = sum(_add_newer_fields(part, part_kind, is_inside=is_inside) for part, part_kind, _ in parts)
    if not is_inside or not isinstance(value, dict) or not isinstance(kind, inspect.StructType):
        return added
    value["brandNew"] = {"of": 2030}
    return added + 1


def _status(world: OperatorWorld, resource: Resource) -> Json:
    return condition_of(world.get(resource, "typo")["status"].get("conditions") or (), "UnknownFields")


@pytest.mark.slow
@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_an_object_of_any_kind_names_its_unknown_fields(resource: Resource, clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    valid = {"spec": rich_spec(resource)}
    wrong: Json = msgspec.json.decode(msgspec.json.encode(valid))
    named = _misspell(wrong, type_of(_MODELS[resource.kind]), "")
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "typo"}}
    world.admin.create(resource, head | wrong, NAMESPACE)
    world.run(10.0)
    told = _status(world, resource)
    assert ("True", "UnknownFields") == (told["status"], told["reason"])
    assert f"Kubernetes ignores the fields that it does not know: {named}" == told["message"]
    assert [1] == [each["count"] for each in world.events("UnknownFields")]
    there = world.get(resource, "typo")
    world.admin.replace(resource, "typo", NAMESPACE, there | valid)
    world.run(20.0)
    assert "False" == _status(world, resource)["status"]
    world.stop()


@pytest.mark.slow
@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_no_newer_field_is_refused_in_any_tree(resource: Resource, clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    body: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "typo"}}
    body |= {"spec": msgspec.json.decode(msgspec.json.encode(rich_spec(resource)))}
    assert _add_newer_fields(body, type_of(_MODELS[resource.kind]))
    world.admin.create(resource, body, NAMESPACE)
    world.run(10.0)
    assert "not known to this operator" in _status(world, resource)["message"]
    assert b"InvalidSpec" not in msgspec.json.encode(world.get(resource, "typo")["status"])
    world.stop()


@pytest.mark.slow
def test_a_report_restarts_no_pod_and_is_made_once(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["affinity"] = _MISSPELLED
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    assert _NAMED == world.condition("UnknownFields")["message"]
    # as an operator has left it that knew no such condition
    world.admin.patch(world.CLUSTERS, "basic", NAMESPACE, {"status": {"conditions": []}}, subresource="status")
    world.restart()
    world.forget()
    pods = [pod["metadata"]["uid"] for pod in world.every(PODS)]
    world.run(120.0)
    assert _NAMED == world.condition("UnknownFields")["message"]
    assert {"patch tidbclusters.pingcap.com/status basic"} == {each for each in world.writes() if "events" not in each}
    assert pods == [pod["metadata"]["uid"] for pod in world.every(PODS)]
    world.forget()
    world.run(120.0)
    assert [] == world.writes()
    world.stop()


@pytest.mark.slow
def test_a_field_that_is_newer_than_the_operator_is_passed_on(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["additionalVolumes"] = [{"name": "scratch", "emptyDir": {}, "brandNew": {"of": 2030}}]
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    said = "spec.tikv.additionalVolumes[0].brandNew: not known to this operator"
    assert world.condition("UnknownFields")["message"].endswith(said)
    sent = [
        entry.call.request.body or b""
        for entry in world.world.server.audit.recent()
        if (entry.call.resource, entry.call.verb) == (f"{STATEFUL_SETS.plural}.apps", "create")
    ]
    assert [True] == [b'"brandNew":{"of":2030}' in body for body in sent if b'"basic-tikv"' in body]
    world.stop()
