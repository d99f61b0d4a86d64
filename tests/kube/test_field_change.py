"""A change is named by its first field, without possible passwords."""

import pytest

from kube.field_change import FieldChange, all_differences, first_patched
from kube.objects import Json


def test_a_change_shows_no_trees_and_no_values_of_the_environment() -> None:
    where = "spec.template.spec.containers[0]"
    assert f"{where}.env[3].value changed" == str(FieldChange(f"{where}.env[3].value", "secret", "other"))
    assert f"{where}.env changed" == str(FieldChange(f"{where}.env", [], [{"name": "A", "value": "secret"}]))
    assert f'{where}.env[3].name: "A" → null' == str(FieldChange(f"{where}.env[3].name", "A", None))


@pytest.mark.parametrize("path", ["data.config-file", "stringData.password", "binaryData.key"])
def test_a_change_shows_nothing_that_users_configure(path: str) -> None:
    assert f"{path} changed" == str(FieldChange(path, "old", "hunter2"))


@pytest.mark.parametrize("value", ["x" * 121, "#!/bin/sh\nexit 0", '{"a":"hunter2"}'])
def test_a_change_shows_no_long_texts_and_no_trees_in_json(value: str) -> None:
    assert "metadata.annotations[a] changed" == str(FieldChange("metadata.annotations[a]", None, value))


LIVE: Json = {
    "metadata": {"uid": "u", "annotations": {"note": "a"}, "labels": {}},
    "spec": {
        "replicas": 3,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}},
        "template": {"spec": {"containers": [{"name": "tikv", "image": "tikv:v1", "imagePullPolicy": "Always"}]}},
    },
}


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ({"spec": {"replicas": 4}}, "spec.replicas: 3 → 4"),
        ({"metadata": {"annotations": {"note": "b"}}, "spec": {"replicas": 4}}, "spec.replicas: 3 → 4"),
        ({"spec": {"updateStrategy": {"rollingUpdate": None}}}, "spec.updateStrategy.rollingUpdate changed"),
        ({"metadata": {"uid": "u", "annotations": {"note": "b"}}}, 'metadata.annotations[note]: "a" → "b"'),
        ({"metadata": {"ownerReferences": [{"uid": "o"}]}}, "metadata.ownerReferences changed"),
        ({"rules": [{"verbs": ["get"]}]}, "rules changed"),
        (
            {"spec": {"template": {"spec": {"containers": [{"name": "tikv", "image": "tikv:v2"}]}}}},
            'spec.template.spec.containers[0].image: "tikv:v1" → "tikv:v2"',
        ),
    ],
)
def test_the_first_field_of_a_patch_is_named_metadata_last(patch: Json, named: str) -> None:
    assert named == str(first_patched(LIVE, patch))


def test_preconditions_alone_are_not_a_change() -> None:
    assert first_patched(LIVE, {"metadata": {"uid": "u", "resourceVersion": "7"}}) is None


def test_all_leaves_that_differ_are_named() -> None:
    old: Json = {
        "spec": {"version": "v1", "pd": {"replicas": 3}, "zones": ["a", "b"], "hosts": ["x"], "gone": {"deep": True}},
        "data": {"password": "a"},
    }
    new: Json = {
        "spec": {"version": "v2", "pd": {"replicas": 3}, "zones": ["a", "c"], "hosts": [], "tikv": {"replicas": 0}},
        "data": {"password": "b"},
    }
    assert [
        'spec.version: "v1" → "v2"',
        'spec.zones[1]: "b" → "c"',
        "spec.hosts changed",
        "spec.gone.deep: true → null",
        "spec.tikv.replicas: null → 0",
        "data.password changed",
    ] == [*map(str, all_differences(old, new))]
    assert [] == [*all_differences(new, new)]
