"""additionalContainers that change generated containers (objects.md 3.5)."""

import pytest

from kube.objects import Json
from member.objects.pod import merge, with_additional_containers


def _env(*names: str) -> list[Json]:
    return [{"name": name, "value": name.lower()} for name in names]


@pytest.mark.rule("objects-3.5")
def test_items_with_other_names_are_appended_in_the_given_order() -> None:
    result = with_additional_containers([{"name": "pd"}], [{"name": "z"}, {"name": "a"}])
    assert ["pd", "z", "a"] == [container["name"] for container in result]


@pytest.mark.rule("objects-3.5")
def test_a_generated_container_is_merged_without_repeating_its_image() -> None:
    generated = {"name": "pd", "image": "pd:v1", "command": ["run"]}
    result = with_additional_containers(
        [generated], [{"name": "pd", "lifecycle": {"preStop": {"exec": {}}}, "tty": True}]
    )
    assert [{"name": "pd", "image": "pd:v1", "command": ["run"], "tty": True}] == result


@pytest.mark.parametrize(
    ("patched", "expected"),
    [
        (["NEW"], ["NEW", "A", "B", "C"]),
        (["B"], ["A", "B", "C"]),
        (["B", "NEW"], ["A", "B", "NEW", "C"]),
        (["NEW", "B"], ["NEW", "A", "B", "C"]),
        (["C", "NEW"], ["A", "B", "C", "NEW"]),
        (["A", "B", "C"], ["A", "B", "C"]),
    ],
)
@pytest.mark.rule("objects-3.5")
def test_new_items_come_before_existing_ones_that_the_patch_does_not_name(
    patched: list[str], expected: list[str]
) -> None:
    merged = merge({"name": "pd", "env": _env("A", "B", "C")}, {"name": "pd", "env": _env(*patched)})
    assert expected == [entry["name"] for entry in merged["env"]]


@pytest.mark.parametrize(
    ("field", "key"),
    [("ports", "containerPort"), ("env", "name"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")],
)
@pytest.mark.rule("objects-3.5")
def test_items_merge_by_their_key(field: str, key: str) -> None:
    merged = merge({field: [{key: "k", "a": 1, "b": 1}]}, {field: [{key: "k", "b": 2}]})
    assert {field: [{key: "k", "a": 1, "b": 2}]} == merged


@pytest.mark.rule("objects-3.5")
def test_maps_merge_and_command_args_and_env_from_are_replaced() -> None:
    container = {
        "command": ["a"],
        "envFrom": [{"configMapRef": {"name": "a"}}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    patch = {
        "command": ["b"],
        "args": ["c"],
        "envFrom": [{"secretRef": {"name": "b"}}],
        "resources": {"limits": {"cpu": "2"}},
    }
    expected = {
        "command": ["b"],
        "args": ["c"],
        "envFrom": [{"secretRef": {"name": "b"}}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    }
    assert expected == merge(container, patch)


@pytest.mark.rule("objects-3.5")
def test_zero_replaces_only_where_it_differs_from_absent() -> None:
    container = {
        "image": "a",
        "tty": True,
        "env": [{"name": "A", "value": "a"}],
        "securityContext": {"privileged": True, "runAsUser": 7},
    }
    patch = {
        "image": "",
        "tty": False,
        "command": None,
        "env": [{"name": "A", "value": ""}],
        "securityContext": {"privileged": False, "runAsUser": 0},
    }
    expected = container | {"securityContext": {"privileged": False, "runAsUser": 0}}
    assert expected == merge(container, patch)


def test_merging_changes_neither_side() -> None:
    container, patch = {"env": _env("A")}, {"env": _env("A", "B")}
    merge(container, patch)
    assert ({"env": _env("A")}, {"env": _env("A", "B")}) == (container, patch)
