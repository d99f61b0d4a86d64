"""Components are listed in one table only, and no other code lists their names or finds a spec by a literal name.

Searched are tuples, lists, sets, keys of dicts, words of a text, and cases of a `match`, with two components or more.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from apis.components import component_names

ROOT = Path(__file__).resolve().parents[1]

ROOMS = (
    *(
        "apis",
        "member",
        "meta",
        "controllers",
        "controller_manager",
        "scheduler",
        "sandbox",
        "rehearsal",
        "simulate",
        "cli",
        "bench",
    ),
    *("backup_manager", "dataplane", "discovery", "informers", "kube", "ports", "workqueue"),
)

TABLE = "apis/components.py"

LISTS: Mapping[tuple[str, str], str] = {
    ("apis/component_specs.py", "('tso', 'scheduling')"): "the enum of `spec.pdms[].name` in the CRD",
    (
        "rehearsal/durations.py",
        "{'pd': timings.pd_start, 'dm-master': timings.pd_start, 'tikv': timings.tikv_start, "
        "'tiflash': timings.tikv_start + timings.tiflash_start, 'tidb': timings.tidb_start, "
        "'ticdc': timings.capture_start, 'pump': timings.pump_start, 'tici-meta': timings.tici_start, "
        "'tici-worker': timings.tici_start, 'dm-worker': timings.dm_worker_start}",
    ): "the timings of the sandbox, which shares no code with the table",
}
"""Lists that may stand outside the table, as `(file, source)`, each with its reason."""

LOOKUPS: Mapping[tuple[str, str], str] = {
    ("cli/tidb/main.py", "getattr(import_module(module), name)"): "commands, by the names in their table",
    ("controller_manager/features.py", "getattr(gates, field)"): "feature gates, by their names in a flag",
    ("controller_manager/flags.py", "getattr(options, option.name)"): "options, by the fields of their class",
    ("kube/pools.py", "getattr(socket, name, None)"): "socket options that some systems lack",
    ("member/context.py", "getattr(self, each.name)"): "listers, by the fields of their class",
    ("ports/lazy_log.py", "getattr(structlog.get_logger(self._name), method)"): "methods of a logger",
    ("sandbox/apiserver/import_types.py", "getattr(models, name, None)"): "types of Kubernetes, by their names",
    ("sandbox/apiserver/import_types.py", "getattr(models, f'V1{name}', None)"): "types of Kubernetes, by their names",
    ("sandbox/kubelet/faults.py", "getattr(self, each.name)"): "faults, by the fields of their class",
    (
        "sandbox/kubelet/runs.py",
        "attrgetter(*(each.name for each in fields(kind) if each.name not in without))",
    ): "what the kubelet remembers of pods and containers, by the fields of their classes",
    (
        "simulate/engine/events.py",
        "getattr(self._engine.world.faults, event.verb, None)",
    ): "faults, by the verbs of a plan",
    ("simulate/engine/events.py", "getattr(event, name)"): "edits and faults, by the fields of their class",
}
"""Attributes that may be found by a name that is no literal, each with its reason."""

BY_NAME = frozenset({"getattr", "setattr", "hasattr", "delattr", "attrgetter"})

Found = tuple[str, str]
"""The file and the source of what was found."""


def lists(path: str, tree: ast.AST) -> Iterator[Found]:
    """Yield each expression of `tree` that names two components or more."""
    known = set(component_names())
    for node in ast.walk(tree):
        if len(known.intersection(_words(node))) > 1:
            yield path, ast.unparse(node)


def _words(node: ast.AST) -> Iterator[str]:
    """What a node lists, if it lists anything."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            yield from _texts(node.elts)
        case ast.Dict():
            yield from _texts(node.keys)
        case ast.Match():
            yield from _texts(inner for case in node.cases for inner in ast.walk(case.pattern))
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="split")):
            yield from text.replace(",", " ").split()


def _texts(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def lookups(path: str, tree: ast.AST) -> Iterator[Found]:
    """Each attribute that is found by a name that is no literal."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in BY_NAME:
                names = node.args if called == "attrgetter" else node.args[1:2]
                if not all(isinstance(name, ast.Constant) for name in names):
                    yield path, ast.unparse(node)


def modules() -> Mapping[str, str]:
    """The text of every module but the table."""
    paths = {path.relative_to(ROOT).as_posix(): path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if name != TABLE}


def sources(words: Iterable[str], count: int) -> Iterator[tuple[str, ast.Module]]:
    """The modules whose text contains enough of the words, to avoid parsing the others."""
    for name, text in modules().items():
        if sum(word in text for word in words) >= count:
            yield name, ast.parse(text)


def test_nothing_but_the_table_lists_components() -> None:
    assert set(LISTS) == {found for path, tree in sources(component_names(), 2) for found in lists(path, tree)}


def test_nothing_but_the_table_finds_a_component_by_its_name() -> None:
    assert set(LOOKUPS) == {found for path, tree in sources(BY_NAME, 1) for found in lookups(path, tree)}


@pytest.mark.parametrize(
    "source",
    [
        "('pd', 'tikv')",
        "['tidb', 'pd', 'other']",
        "{'tiflash', 'ticdc'}",
        "{'pump': 1, 'tiproxy': 2}",
        "frozenset({'tso', 'scheduling'})",
        "for each in ('discovery', 'pd'): pass",
        "'pd tikv tidb'.split()",
        "match name:\n    case 'pd':\n        pass\n    case 'tikv' | 'tidb':\n        pass",
    ],
)
def test_a_list_is_found(source: str) -> None:
    assert 1 == len(list(lists("", ast.parse(source))))


@pytest.mark.parametrize(
    "source",
    [
        "('pd', 2379)",
        "{'name': 'pd', 'component': 'tikv'}",
        "make('pd', 'tikv')",
        "match name:\n    case 'pd':\n        pass\n    case 'other':\n        pass",
    ],
)
def test_what_names_one_component_is_no_list(source: str) -> None:
    assert [] == list(lists("", ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("getattr(spec, name)", 1),
        ("getattr(tc.status, component.name, None)", 1),
        ("setattr(spec, name, other)", 1),
        ("operator.attrgetter(name)", 1),
        ("getattr(error, 'code', 0)", 0),
        ("spec.pd", 0),
    ],
)
def test_a_lookup_by_name_is_found(source: str, found: int) -> None:
    assert found == len(list(lookups("", ast.parse(source))))


def test_every_room_is_searched() -> None:
    searched = {name.partition("/")[0] for name in modules()}
    assert set(ROOMS) == searched
    beside = {"tests", "examples", "hack", "library", "manifests", "release"}
    assert searched == {path.parent.name for path in ROOT.glob("*/__init__.py")} - beside
