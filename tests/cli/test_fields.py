"""R22: each field of a TidbCluster shows in the objects that docs/fields.md says, or it is said there why in none."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apis.accessor import Component
from cli.fields import probe, samples, table
from cli.fields.__main__ import PAGE
from cli.fields.effects import Place, differences
from cli.fields.probe import BadSample, built_objects, effect
from cli.fields.samples import Pair, pairs
from kube.objects import Json
from member.fields.declared import AT_RUN_TIME, NO_EFFECT, TESTS, fields, fits
from simulate.engine.trees import merged

TREE = Path(__file__).parents[1]

WAYS = (
    "*configUpdateStrategy",
    "*.readinessProbe.type",
    "pd.mode",
    "pd.startUpScriptVersion",
    "services.name",
    "startScriptV*",
    "tiproxy.certLayout",
)
"""Fields whose values control how objects are created, without appearing in them."""

OWNERS = sorted({path.partition(".")[0] for path in fields() if "." in path} | {""})
"""The prefixes of fields in a spec; empty for top-level fields."""


def shown(owner: str) -> list[str]:
    """The fields that stand there and show in objects."""
    own = (path for path in fields() if (path.partition(".")[0] if "." in path else "") == owner)
    return [path for path in own if effect(path).places]


@cache
def pair_of(path: str) -> Pair:
    """The clusters in which a field shows."""
    return next(each for each in pairs(path, fields()[path]) if each.title == effect(path).title)


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """`path=value` of whatever is in a tree."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}/{key}")
    else:
        yield f"{path}={value}"


def texts(path: str) -> Iterator[str]:
    """The texts and numbers that a field is set to; whether something is on or off need not be seen as such."""
    pair = pair_of(path)
    before = set(leaves(pair.before))
    for leaf in leaves(pair.after):
        if leaf not in before and (text := leaf.partition("=")[2]) not in ("True", "False"):
            yield text


def is_seen(path: str) -> bool:
    """True if the objects show the field's value."""
    pair = pair_of(path)
    before, after = (set(leaves(built_objects(cluster))) for cluster in (pair.before, pair.after))
    changed = "\n".join(before ^ after)
    return any(fits(path, way) for way in WAYS) or all(each in changed for each in texts(path))


@pytest.mark.slow
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.rule("R22")
def test_every_declared_effect_shows(owner: str) -> None:
    assert [] == [path for path in shown(owner) if not is_seen(path)]


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_every_field_has_an_effect_or_a_declaration_that_it_has_none() -> None:
    assert [] == table.defects()


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == table.page()


@pytest.mark.slow
def test_every_field_has_a_row() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [path for path, row in table.rows().items() if not row.effect or path.rpartition(".")[2] not in text]
    assert [] == missing


@cache
def functions(module: str) -> frozenset[str]:
    tree = ast.parse((TREE / module).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


CITED = sorted({each.test for each in AT_RUN_TIME.values()} | set(TESTS.values()))


@pytest.mark.parametrize("test", CITED)
def test_every_cited_test_exists(test: str) -> None:
    module, _, name = test.partition("::")
    assert name in functions(module)


@pytest.mark.parametrize("globs", [AT_RUN_TIME, TESTS])
def test_every_cited_test_is_about_its_field(globs: dict[str, Any]) -> None:
    for glob, said in globs.items():
        module = (said if isinstance(said, str) else said.test).partition("::")[0]
        text = (TREE / module).read_text(encoding="utf-8").lower().replace("_", "")
        names = {path.rpartition(".")[2].lower() for path in fields() if fits(path, glob)}
        assert any(name in text for name in names), glob


def test_a_field_without_effect_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(NO_EFFECT, "discovery.image")
    (defect,) = table.defects()
    assert defect.startswith("spec.discovery.image has no effect")


def test_a_field_that_a_builder_forgets_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = "tikv.priorityClassName"
    monkeypatch.setattr(Component, "priority_class_name", property(lambda _: None))
    monkeypatch.setattr(probe, "_built_objects", probe._built_objects.__wrapped__)
    found = effect.__wrapped__(forgotten)
    monkeypatch.undo()
    monkeypatch.setattr(table, "effect", lambda path: found if path == forgotten else effect(path))
    (defect,) = table.defects()
    assert defect.startswith(f"spec.{forgotten} has no effect")


def test_reports_a_field_that_has_an_effect_although_it_is_declared_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NO_EFFECT, "tikv.dataSubDir", "nobody needs it")
    (defect,) = table.defects()
    assert defect.startswith("spec.tikv.dataSubDir has an effect")


def test_reports_a_declaration_without_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TESTS, "tikv.dataDir", "member/test_tikv.py::test_mounts_in_order")
    assert ["tikv.dataDir in member/fields/declared.py is no field"] == table.defects()


def test_a_sample_that_is_refused_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(samples.VALUES, "tikv.dataSubDir", "/x")
    with pytest.raises(BadSample, match=r"spec\.tikv\.dataSubDir is refused: spec\.tikv\.dataSubDir: \"/x\""):
        effect.__wrapped__("tikv.dataSubDir")


CONTAINERS: list[Json] = [{"name": "tikv", "image": "a", "command": ["x"]}]
SET: Json = {
    "kind": "StatefulSet",
    "metadata": {"name": "demo-tikv", "labels": {"app.kubernetes.io/component": "tikv"}},
    "spec": {
        "replicas": 3,
        "template": {"metadata": {}, "spec": {"containers": CONTAINERS}},
    },
}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"spec": {"replicas": 4}}, "StatefulSet `replicas`"),
        ({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}, "pod `labels`"),
        ({"spec": {"template": {"spec": {"affinity": {}}}}}, "pod `affinity`"),
        ({"spec": {"template": {"spec": {"containers": [{"name": "tikv", "image": "b"}]}}}}, "container `image`"),
        (
            {"spec": {"template": {"spec": {"containers": [{"name": "tikv", "image": "a"}, {"name": "b"}]}}}},
            "pod `containers`",
        ),
    ],
)
def test_places_are_described_in_words(change: Json, what: str) -> None:
    assert {Place("tikv", what)} <= differences([SET], [merged(SET, change)])
