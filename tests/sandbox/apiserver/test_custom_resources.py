"""CustomResourceDefinitions and their effects on the server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import Json
from ports.transport import Request
from sandbox.apiserver import json_path, structural
from tests.sandbox.apiserver.calls import DEFINITIONS, MERGE, STRATEGIC, TABLE, WIDGETS, Calls, definition, widget

_STRING = {"type": "string"}
_SPEC: Json = {
    "type": "object",
    "required": ["mode"],
    "properties": {
        "mode": {"type": "string", "enum": ["a", "b"]},
        "replicas": {"type": "integer", "minimum": 0, "default": 3},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "size": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": _STRING},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "items": {
            "type": "array",
            "maxItems": 2,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
            "items": {
                "type": "object",
                "required": ["key"],
                "properties": {"key": _STRING, "weight": {"type": "integer", "default": 1}},
            },
        },
        "storage": {"type": "object", "properties": {"class": {"type": "string", "default": "fast"}}},
    },
}


@pytest.fixture
def widgets(call: Calls) -> Calls:
    columns = [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    call.made(
        DEFINITIONS, definition(_SPEC, subresources={"status": {}, "scale": scale}, additionalPrinterColumns=columns)
    )
    return call


def test_a_definition_is_established(widgets: Calls) -> None:
    tree = widgets("GET", f"{DEFINITIONS}/widgets.example.com").tree
    conditions = {one["type"]: one["status"] for one in tree["status"]["conditions"]}
    assert {"NamesAccepted": "True", "Established": "True"} == conditions
    assert ("WidgetList", "widget", ["v1"]) == (
        tree["status"]["acceptedNames"]["listKind"],
        tree["status"]["acceptedNames"]["singular"],
        tree["status"]["storedVersions"],
    )


def test_defaults_are_filled_in(widgets: Calls) -> None:
    made = widgets.made(WIDGETS, widget("w", mode="a", items=[{"key": "x"}], storage={}))
    assert {
        "mode": "a",
        "replicas": 3,
        "items": [{"key": "x", "weight": 1}],
        "storage": {"class": "fast"},
    } == made["spec"]


def test_unknown_fields_are_pruned_with_a_warning(widgets: Calls) -> None:
    body = widget("w", mode="a", zz=1, free={"any": {"thing": None}}, items=[{"key": "k", "w": 1}])
    answer = widgets("POST", WIDGETS, body | {"extra": 1})
    assert {"mode", "replicas", "free", "items"} == set(answer.tree["spec"])
    assert {"any": {"thing": None}} == answer.tree["spec"]["free"]
    fields = ("extra", "spec.items[0].w", "spec.zz")
    assert ", ".join(f'299 - "unknown field \\"{field}\\""' for field in fields) == answer.headers["warning"]


def test_strict_refuses_unknown_fields(widgets: Calls) -> None:
    answer = widgets("POST", f"{WIDGETS}?fieldValidation=Strict", widget("w", mode="a", zz=1))
    expected = 'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.zz"'
    assert (400, "BadRequest", expected) == (answer.code, answer.tree["reason"], answer.tree["message"])
    widgets.made(WIDGETS, widget("w", mode="a"))
    patched = widgets("PATCH", f"{WIDGETS}/w?fieldValidation=Strict", {"spec": {"zz": 1}}, content_type=MERGE)
    assert (422, True) == (
        patched.code,
        patched.tree["message"].endswith('strict decoding error: unknown field "spec.zz"'),
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.mode: Required value"),
        ({"mode": "c"}, 'spec.mode: Unsupported value: "c": supported values: "a", "b"'),
        (
            {"mode": "a", "replicas": -1},
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
        ),
        (
            {"mode": "a", "replicas": "1"},
            'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
        ),
        ({"mode": "a", "name": "abcd"}, "spec.name: Too long: may not be more than 3 bytes"),
        ({"mode": "a", "name": "A"}, "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'"),
        (
            {"mode": "a", "size": True},
            'spec.size: Invalid value: "boolean": spec.size in body must be of type integer,string: "boolean"',
        ),
        (
            {"mode": "a", "labels": {"x": 1}},
            'spec.labels.x: Invalid value: "integer": spec.labels.x in body must be of type string: "integer"',
        ),
        ({"mode": "a", "items": [{}]}, "spec.items[0].key: Required value"),
        ({"mode": "a", "items": [{"key": "k"}, {"key": "k"}]}, 'spec.items[1]: Duplicate value: {"key":"k"}'),
        (
            {"mode": "a", "items": [{"key": key} for key in "xyz"]},
            "spec.items: Too many: 3: must have at most 2 items",
        ),
        (
            {"mode": None},
            'spec.mode: Invalid value: "null": spec.mode in body must be of type string: "null"',
        ),
    ],
)
def test_schemas_are_enforced(widgets: Calls, spec: Json, message: str) -> None:
    answer = widgets("POST", WIDGETS, widget("w", **spec))
    assert (422, f'Widget.example.com "w" is invalid: {message}') == (answer.code, answer.tree["message"])


def test_metadata_is_checked_as_for_built_in_kinds(widgets: Calls) -> None:
    body = widget("w", mode="a")
    body["metadata"]["labels"] = 5
    answer = widgets("POST", WIDGETS, body)
    expected = "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"
    assert (400, True) == (answer.code, answer.tree["message"].endswith(expected))


def test_an_old_mistake_may_stay(widgets: Calls) -> None:
    loose = definition({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    widgets.merged(f"{DEFINITIONS}/widgets.example.com", {"spec": loose["spec"]})
    widgets.made(WIDGETS, widget("w", mode="old", replicas=1))
    strict = definition(_SPEC)
    widgets.merged(f"{DEFINITIONS}/widgets.example.com", {"spec": strict["spec"]})
    assert 200 == widgets.merged(f"{WIDGETS}/w", {"spec": {"replicas": 2}}).code
    assert 422 == widgets.merged(f"{WIDGETS}/w", {"spec": {"mode": "new"}}).code


def test_the_status_subresource_is_the_only_door_to_status(widgets: Calls) -> None:
    made = widgets.made(WIDGETS, widget("w", mode="a") | {"status": {"replicas": 9}})
    assert "status" not in made
    patch = {"status": {"replicas": 2}, "spec": {"mode": "b"}, "metadata": {"labels": {"x": "y"}}}
    patched = widgets.merged(f"{WIDGETS}/w/status", patch).tree
    assert ({"replicas": 2}, "a", 1) == (patched["status"], patched["spec"]["mode"], patched["metadata"]["generation"])
    assert "labels" not in patched["metadata"]
    assert 2 == widgets.merged(f"{WIDGETS}/w", {"spec": {"mode": "b"}}).tree["metadata"]["generation"]


def test_without_a_status_subresource_status_is_a_field_like_others(call: Calls) -> None:
    call.made(DEFINITIONS, definition(_SPEC))
    call.made(WIDGETS, widget("w", mode="a"))
    patched = call.merged(f"{WIDGETS}/w", {"status": {"phase": "x"}}).tree
    assert ({"phase": "x"}, 2) == (patched["status"], patched["metadata"]["generation"])
    assert 404 == call.server.handle("x", Request("GET", f"{WIDGETS}/w/status")).status


def test_scale_follows_the_paths(widgets: Calls) -> None:
    widgets.made(WIDGETS, widget("w", mode="a"))
    assert 5 == widgets.merged(f"{WIDGETS}/w/scale", {"spec": {"replicas": 5}}).tree["spec"]["replicas"]
    assert 5 == widgets("GET", f"{WIDGETS}/w").tree["spec"]["replicas"]


def test_printer_columns(widgets: Calls) -> None:
    widgets.made(WIDGETS, widget("w", mode="a"))
    widgets.merged(f"{WIDGETS}/w/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    table = widgets("GET", WIDGETS, accept=TABLE).tree
    assert ["Name", "Replicas", "Ready", "Age"] == [column["name"] for column in table["columnDefinitions"]]
    assert ["w", 3, "True", "0s"] == table["rows"][0]["cells"]


def test_updates_need_a_version_and_strategic_merge_is_not_for_custom_resources(widgets: Calls) -> None:
    widgets.made(WIDGETS, widget("w", mode="a"))
    unconditional = widgets("PUT", f"{WIDGETS}/w", widget("w", mode="b"))
    assert (422, "metadata.resourceVersion") == (
        unconditional.code,
        unconditional.tree["details"]["causes"][0]["field"],
    )
    assert 415 == widgets("PATCH", f"{WIDGETS}/w", {}, content_type=STRATEGIC).code


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["mode", "key", "zz"]), inner),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from([*_SPEC["properties"], "other"]), _values))
def test_pruning_and_defaulting_a_second_time_changes_nothing(spec: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"spec": _SPEC}}
    tree = widget("w", **spec)
    structural.prune(tree, schema)
    structural.apply_defaults(tree, schema)
    again = widget("w", **tree["spec"])
    assert [] == structural.prune(again, schema)
    structural.apply_defaults(again, schema)
    assert tree == again


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("{.spec['replicas']}", [3]),
        (".items[*].n", [1, 2, 3]),
        (".items[-1].n", [3]),
        (".items[0:2].n", [1, 2]),
        (".items[?(@.n>1)].n", [2, 3]),
        ('.items[?(@.t=="b")].n', [2]),
        (r".labels.app\.kubernetes\.io", ["x"]),
        (".missing.path", []),
    ],
)
def test_json_path(path: str, found: list[Any]) -> None:
    tree = {
        "spec": {"replicas": 3},
        "labels": {"app.kubernetes.io": "x"},
        "items": [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}, {"n": 3, "t": "c"}],
    }
    assert found == json_path.find(path, tree)
