"""TOML text, stable byte by byte (objects.md 6.2)."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis import toml
from tests.apis.clusters import golden
from tests.apis.field_trees import shared_file

_SCALARS = st.one_of(
    st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
_TABLES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(st.text(), st.one_of(_SCALARS, st.lists(_SCALARS)), max_size=3),
    lambda below: st.dictionaries(st.text(), st.one_of(_SCALARS, below, st.lists(below, max_size=3)), max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(_TABLES)
def test_tables_survive_writing_and_reading(table: dict[str, Any]) -> None:
    assert table == toml.loads(toml.dumps(table))


@pytest.mark.slow
@given(_TABLES)
def test_the_order_of_keys_does_not_change_the_text(table: dict[str, Any]) -> None:
    assert toml.dumps(table) == toml.dumps(dict(reversed(table.items())))


def test_text_of_v1_6_is_reproduced_byte_by_byte() -> None:
    shared_file("golden", "README.md")
    texts = [
        text
        for _, item in golden()
        if item["kind"] == "ConfigMap"
        for key, text in item["data"].items()
        if key == "config-file" or key.endswith(".toml")
    ]
    assert len(texts) > 10
    for text in texts:
        assert text == toml.dumps(toml.loads(text))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({}, ""),
        ({"log": {"file": {"max-backups": 3}}}, "[log]\n  [log.file]\n    max-backups = 3\n"),
        ({"b": {"x": 1}, "a": {"y": 2}, "z": "v"}, 'z = "v"\n\n[a]\n  y = 2\n\n[b]\n  x = 1\n'),
        ({"z": 1, "B": 2, "a": 3}, "B = 2\na = 3\nz = 1\n"),
        ({"s": {"t": {"k": 1}, "a": ["x", "y"]}}, '[s]\n  a = ["x", "y"]\n  [s.t]\n    k = 1\n'),
        (
            {"r": {"rule": [{"a": 1}, {"b": {"c": 2}}]}},
            "[r]\n\n  [[r.rule]]\n    a = 1\n\n  [[r.rule]]\n    [r.rule.b]\n      c = 2\n",
        ),
        ({"rule": [{"a": 1}]}, "[[rule]]\n  a = 1\n"),
        ({"f": 1.0, "g": 1e21, "h": 1e-7}, "f = 1.0\ng = 1000000000000000000000.0\nh = 0.0000001\n"),
        ({"s": 'a\t"b"\\\r\n\x01'}, 's = "a\\t\\"b\\"\\\\\\r\\n\\u0001"\n'),
        ({"a b": 1, "": {"x.y": True}}, '"a b" = 1\n\n[""]\n  "x.y" = true\n'),
        ({"x": None, "t": {"y": None}, "e": []}, "e = []\n\n[t]\n"),
        ({"m": [1, {"a": [{"b": False}]}]}, "m = [1, {a = [{b = false}]}]\n"),
        ({"i": float("inf"), "m": float("-inf")}, "i = inf\nm = -inf\n"),
        ({"d": datetime.date(2026, 1, 2)}, "d = 2026-01-02\n"),
    ],
)
def test_writes_values_in_the_notation_of_v1_6(table: dict[str, Any], text: str) -> None:
    assert text == toml.dumps(table)


def test_refuses_a_value_that_toml_cannot_express() -> None:
    with pytest.raises(TypeError, match="object"):
        toml.dumps({"a": object()})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = 1\n[log]\n[x.y]"),
        ("a = '90s'", "a = '1m30s'"),
        ("a = '1h'", "a = '60m'"),
        ("a = '1s'", "a = '1000ms'"),
        ("a = '1GB'", "a = '1024MiB'"),
        ("[[a]]\nb = '1m'", "[[a]]\nb = '60s'"),
    ],
)
@pytest.mark.rule("R22")
def test_equal_values_in_different_notations_are_the_same(one: str, other: str) -> None:
    assert toml.same(toml.loads(one), toml.loads(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = 1.0"),
        ("a = 1", "a = true"),
        ("a = '1d'", "a = '24h'"),
        ("a = '60'", "a = 60"),
        ("a = '60 s'", "a = '1m'"),
        ("a = '1m'", "a = '1M'"),
        ("labels.zone = '60s'", "labels.zone = '1m'"),
        ("a = []", ""),
        ("a = ''", ""),
        ("[[a]]", ""),
    ],
)
@pytest.mark.rule("R22")
def test_values_that_servers_read_differently_differ(one: str, other: str) -> None:
    assert not toml.same(toml.loads(one), toml.loads(other))
