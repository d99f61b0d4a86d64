from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import Json
from kube.semantic import covers, merge_patch, semantically_equal
from tests.kube.fakes import merged

_KEYS = st.sampled_from(["replicas", "name", "labels", "storage", "ports", "spec", "optional"])
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "1Gi", "1024Mi"]))
_TREES = st.dictionaries(
    _KEYS,
    st.recursive(
        _SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_KEYS, inner, max_size=3))
    ),
    max_size=4,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": None}, {}),
        ({"metadata": {"creationTimestamp": None}, "status": {}, "env": []}, {}),
        ({"a": {"b": {"c": None}}}, {}),
        ({"hostNetwork": False, "nodePort": 0, "name": ""}, {}),
        ({"resources": {"requests": {"storage": "1Gi"}}}, {"resources": {"requests": {"storage": "1024Mi"}}}),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": 1}}),
        ({"limits": {"cpu": "0.5"}}, {"limits": {"cpu": "500m"}}),
        ({"volumes": [{"name": "x", "emptyDir": {}}]}, {"volumes": [{"name": "x"}]}),
    ],
)
def test_objects_11_1_insignificant_values_equal_absence(one: Any, other: Any) -> None:
    assert semantically_equal(one, other)
    assert semantically_equal(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"replicas": 0}, {}),
        ({"partition": 0}, {}),
        ({"privileged": False}, {}),
        ({"optional": False}, {}),
        ({"storageClassName": ""}, {}),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
        ({"labels": {"a": ""}}, {"labels": {}}),
        ({"data": {"storage": "1Gi"}}, {"data": {"storage": "1024Mi"}}),
        ({"image": "1Gi"}, {"image": "1024Mi"}),
        ({"limits": {"cpu": "0"}}, {}),
        ({"rules": [{"resources": ["pods"]}]}, {"rules": [{"resources": ["nodes"]}]}),
    ],
)
def test_objects_11_1_explicit_values_differ_from_absence(one: Any, other: Any) -> None:
    assert not semantically_equal(one, other)


@pytest.mark.parametrize("text", ["pods", "Infinity", "", "0x1"])
def test_text_that_is_no_quantity_equals_only_itself(text: str) -> None:
    limits = {"resources": {"limits": {"cpu": text}}}

    assert semantically_equal(limits, limits)
    assert not semantically_equal(limits, {"resources": {"limits": {"cpu": "1"}}})


def test_objects_11_7_server_defaults_are_not_a_difference() -> None:
    desired = {"spec": {"template": {"containers": [{"name": "pd", "ports": [{"containerPort": 2379}]}]}}}
    defaulted = {
        "name": "pd",
        "terminationMessagePath": "/dev/termination-log",
        "ports": [{"containerPort": 2379, "protocol": "TCP"}],
    }
    live = {"spec": {"revisionHistoryLimit": 10, "template": {"containers": [defaulted]}}}

    assert covers(live, desired)


def test_a_patch_holds_only_what_differs() -> None:
    live = {"spec": {"replicas": 3, "paused": True}, "metadata": {"labels": {"a": "1", "foreign": "x"}}}
    desired = {"spec": {"replicas": 5, "paused": True}, "metadata": {"labels": {"a": "1"}}}

    assert {"spec": {"replicas": 5}} == merge_patch(live, desired, None)


def test_a_patch_removes_only_own_fields_that_are_no_longer_desired() -> None:
    live = {"spec": {"a": 1, "b": 2, "c": 3}, "metadata": {"name": "x", "annotations": {"ours": "1", "foreign": "2"}}}
    desired = {"spec": {"a": 1}, "metadata": {"name": "x"}}
    applied = {"spec": {"a": 1, "b": 2, "gone": 4}, "metadata": {"annotations": {"ours": "1"}}}

    patch = merge_patch(live, desired, applied)

    assert {"spec": {"b": None}, "metadata": {"annotations": {"ours": None}}} == patch


def test_a_patch_removes_an_own_structure_with_its_defaults() -> None:
    live = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3, "maxUnavailable": 1}}}
    applied = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}}
    desired = {"updateStrategy": {"type": "OnDelete"}}

    assert {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}} == merge_patch(live, desired, applied)


def test_a_list_that_differs_is_replaced_whole() -> None:
    desired = {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b"}]}

    assert desired == merge_patch({"volumes": [{"name": "a", "emptyDir": {}}]}, desired, None)


def test_a_field_missing_from_a_list_item_differs_only_if_it_was_applied() -> None:
    live = {"containers": [{"name": "pd", "env": [{"name": "A"}], "tty": True}]}
    desired = {"containers": [{"name": "pd", "tty": True}]}

    assert merge_patch(live, desired, None) is None
    assert desired == merge_patch(live, desired, live)


@pytest.mark.slow
@given(_TREES, _TREES, st.one_of(st.none(), _TREES))
def test_after_a_patch_there_is_nothing_to_patch(live: Any, desired: Any, applied: Any) -> None:
    patch = merge_patch(live, desired, applied)

    after = live if patch is None else merged(live, patch)

    assert covers(after, desired)
    assert merge_patch(after, desired, applied) is None


@pytest.mark.slow
@given(_TREES, _TREES)
def test_equal_trees_cover_each_other(one: Any, other: Any) -> None:
    if semantically_equal(one, other):
        assert covers(one, other)
        assert covers(other, one)


_SPREAD = [{"topologyKey": "zone", "maxSkew": 1}, {"topologyKey": "host", "maxSkew": 1}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "b"}, {"key": "a", "value": ""}]}),
        ({"topologySpreadConstraints": _SPREAD}, {"topologySpreadConstraints": _SPREAD[::-1]}),
        ({"capabilities": {"add": ["A", "B"]}}, {"capabilities": {"add": ["B", "A"]}}),
        ({"env": [{"name": "A", "value": "1"}, {"name": "B"}]}, {"env": [{"name": "B"}, {"name": "A", "value": "1"}]}),
    ],
)
def test_objects_11_1_sets_have_no_order(one: Json, other: Json) -> None:
    assert semantically_equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": ["a", "b"]}, {"command": ["b", "a"]}),
        ({"tolerations": [{"key": "a"}, {"key": "a"}]}, {"tolerations": [{"key": "a"}]}),
        ({"envFrom": [{"prefix": "a"}, {"prefix": "b"}]}, {"envFrom": [{"prefix": "b"}, {"prefix": "a"}]}),
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]},
            {"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]},
        ),
        (
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "2"}, {"name": "A", "value": "1"}]},
        ),
        ({"labels": {"env": ["a", "b"]}}, {"labels": {"env": ["b", "a"]}}),
    ],
)
def test_objects_11_1_other_lists_have_an_order(one: Json, other: Json) -> None:
    assert not semantically_equal(one, other)


def test_objects_11_1_a_set_is_not_written_for_its_order_nor_for_defaults_of_its_items() -> None:
    live = {"ports": [{"name": "a", "port": 1, "protocol": "TCP"}, {"name": "b", "port": 2, "protocol": "TCP"}]}
    ports = [{"name": "b", "port": 2}, {"name": "a", "port": 1}]
    assert None is merge_patch(live, {"ports": ports}, None)
    assert None is merge_patch(live, {"ports": ports}, {"ports": ports[::-1]})
    assert {"ports": [*ports[:1], {"name": "a", "port": 3}]} == merge_patch(
        live, {"ports": [*ports[:1], {"name": "a", "port": 3}]}, {"ports": ports}
    )
