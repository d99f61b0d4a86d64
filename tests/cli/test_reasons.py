"""Each reason that the code can give has a section in docs/reasons/, and each section a reason."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from apis.cluster import WITHOUT_EFFECT
from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_type, component_types
from cli.reasons.__main__ import DIRECTORY, outdated, pages, target, write
from cli.reasons.registry import REASONS
from controllers.stages import EXPECTED
from member.components import workload_names
from tests.style.rules import anchors

ROOT = Path(__file__).parents[2]
_ROOMS = ("member", "meta", "controllers")
_OUTCOMES = {"Waiting": 0, "Refused": 0, "Failed": 0, "Done": 1, "RequeueError": 0}
_CONDITIONS = tuple(ROOT / "controllers" / each for each in ("", "tidbcluster", "dmcluster"))


_MANAGED = [component_type(name) for of in (TIDB_CLUSTER, DM_CLUSTER) for name in workload_names(of)]
_WAITED_FOR = {name for row in _MANAGED for name in (*row.starts_after, *row.upgrades_after)}
_TITLES = {
    "FailedUpdate": {row.word for row in _MANAGED},
    "WaitingFor": {row.word for row in _MANAGED if row.name in _WAITED_FOR},
    **{text: {row.title for row in _MANAGED if row.is_store} for text in ("Failover", "FailedOver", "StoreDown")},
}
"""The reasons that contain the title of a component, and the titles that occur."""


@dataclass(frozen=True, slots=True)
class _Module:
    path: Path
    tree: ast.Module

    @property
    def name(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    def constants(self) -> Mapping[str, ast.expr]:
        """The values assigned to names at the top of the module."""
        return {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def imported(self) -> Mapping[str, tuple[str, str]]:
        """Name → the module that it is from, and its name there."""
        return {
            alias.asname or alias.name: (node.module, alias.name)
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }


def _modules() -> dict[str, _Module]:
    paths = [path for room in _ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    modules = [_Module(path, ast.parse(path.read_text(), str(path))) for path in paths]
    return {module.name: module for module in modules}


def _read(name: str) -> _Module:
    """A module of a room below the rooms with outcomes. Raises KeyError for any other."""
    path = ROOT / f"{name.replace('.', '/')}.py"
    if not path.exists():
        raise KeyError(name)
    return _Module(path, ast.parse(path.read_text(), str(path)))


def _defaults(module: _Module) -> set[str]:
    """The reasons that errors have unless they are given another one."""
    made = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    pairs = [
        (argument.arg, default)
        for node in made
        for argument, default in zip(node.args.args[::-1], node.args.defaults[::-1], strict=False)
    ]
    return {str(each.value) for name, each in pairs if name == "reason" and isinstance(each, ast.Constant)} - {""}


def _givers(modules: Mapping[str, _Module]) -> dict[str, int]:
    """The functions that take a reason, and its position: outcomes, and functions that return outcomes with a given
    reason."""
    found = dict(_OUTCOMES)
    for module in modules.values():
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and node.returns
                and ast.unparse(node.returns) in (*_OUTCOMES, "Outcome")
            ):
                names = [argument.arg for argument in node.args.args]
                if "reason" in names:
                    found[node.name] = names.index("reason")
    return found


def _given(module: _Module, givers: Mapping[str, int]) -> Iterator[ast.expr]:
    """The expressions that stand for a reason in a module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in givers:
            at = givers[node.func.id]
            by_name = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
            yield from by_name or node.args[at : at + 1]


def _values(modules: Mapping[str, _Module], module: _Module, node: ast.expr) -> set[str]:
    """The possible values of an expression. Raises AssertionError for one that the code does not show."""
    where = f"{module.path.relative_to(ROOT)}:{node.lineno}"
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Attribute(attr=name):
            return _of_attribute(modules, node, name, where)
        case ast.Subscript(value=ast.Name(id=name)):
            table = module.constants().get(name)
            assert isinstance(table, ast.Dict), f"{where}: {name} is no constant dict"
            return set().union(*(_values(modules, module, value) for value in table.values))
        case ast.JoinedStr(values=parts):
            return _made_of_titles(parts, where)
        case ast.Name(id=name):
            return _named(modules, module, node, name)
    raise AssertionError(f"{where}: a reason must be a literal or a constant, not {ast.unparse(node)}")


def _named(modules: Mapping[str, _Module], module: _Module, node: ast.expr, name: str) -> set[str]:
    if name in module.constants():
        return _values(modules, module, module.constants()[name])
    if name in module.imported():
        origin, original = module.imported()[name]
        source = modules[origin] if origin in modules else _read(origin)
        return _values(modules, source, source.constants()[original])
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            each is node for each in ast.walk(function)
        ):
            if name in [argument.arg for argument in function.args.args]:
                return set()  # the function is a giver itself
            assigned = [
                each.value
                for each in ast.walk(function)
                if isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in each.targets)
            ]
            if assigned:
                return set().union(*(_values(modules, module, value) for value in assigned))
    raise AssertionError(f"{module.path.relative_to(ROOT)}:{node.lineno}: what is {name}?")


def _of_attribute(modules: Mapping[str, _Module], node: ast.expr, name: str, where: str) -> set[str]:
    """The values of an attribute in the classes that set it."""
    if name == "reason":
        return set()  # passed on from an outcome that was counted at its origin
    if ast.unparse(node) == "type(error).__name__":
        return _errors()
    found: set[str] = set()
    for module in modules.values():
        for each in (node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)):
            sets = (node for node in each.body if isinstance(node, ast.Assign))
            values = [node.value for node in sets if name in [ast.unparse(target) for target in node.targets]]
            found |= set().union(*(_values(modules, module, value) for value in values))
    assert found, f"{where}: no class sets {name}"
    return found


def _made_of_titles(parts: list[ast.expr], where: str) -> set[str]:
    """The reasons of a text that contains the title of a component."""
    title = next(part for part in parts if isinstance(part, ast.FormattedValue))
    assert ast.unparse(title.value).endswith((".title", ".word")), where
    before, after = _text(parts[: parts.index(title)]), _text(parts[parts.index(title) + 1 :])
    return {f"{before}{each}{after}" for each in _TITLES[before or after]}


def _text(parts: list[ast.expr]) -> str:
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def _errors() -> set[str]:
    """The names of the errors that a stage may end with."""
    found, open_ = set(), list(EXPECTED)
    while open_:
        error = open_.pop()
        open_ += error.__subclasses__()
        if not error.__name__.startswith("_"):
            found.add(error.__name__)
    return found


def _of_conditions(modules: Mapping[str, _Module]) -> set[str]:
    """The reasons that conditions get directly: in tuples of status, reason and message."""
    found: set[str] = set()
    for module in modules.values():
        # a review at admission sets no condition
        if module.path.parent not in _CONDITIONS or module.name == "controllers.admission":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Tuple):
                parts = [part for part in node.elts if isinstance(part, ast.Constant | ast.Name)]
                texts = [_only_value(modules, module, part) for part in parts]
                found |= {text for text in texts if text.isidentifier() and text[0].isupper()}
    return found


def _only_value(modules: Mapping[str, _Module], module: _Module, part: ast.expr) -> str:
    try:
        values = _values(modules, module, part)
    except (AssertionError, KeyError):
        return ""
    return values.pop() if len(values) == 1 else ""


@pytest.mark.slow
def test_every_reason_has_a_section_and_every_section_a_reason() -> None:
    modules = _modules()
    givers = _givers(modules)
    given = _of_conditions(modules) | {row.unready.reason for row in component_types() if row.unready}
    given |= set(WITHOUT_EFFECT)
    given |= {reason for row in _MANAGED if row.outage for reason in row.outage.reasons}
    for module in modules.values():
        given |= _defaults(module)
        for expression in _given(module, givers):
            given |= _values(modules, module, expression)
    assert {"without a section": [], "without a use": []} == {
        "without a section": sorted(given - REASONS.keys()),
        "without a use": sorted(REASONS.keys() - given - {"Done"}),
    }


def test_every_section_says_what_to_do_and_is_short() -> None:
    for name, reason in REASONS.items():
        for text in (reason.means, reason.meanwhile, reason.you):
            assert text.endswith((".", "`")), (name, text)
            assert len(text) < 500, (name, text)


def test_the_pages_match_the_registry() -> None:
    assert [] == outdated(DIRECTORY)


@pytest.mark.parametrize("reason", REASONS)
def test_the_link_of_a_reason_leads_to_its_section(reason: str) -> None:
    page, _, anchor = target(reason).partition("#")
    assert anchor in anchors(DIRECTORY / page)


def test_a_page_links_the_documents_that_its_texts_name() -> None:
    assert "see [operations.md](../operations.md#failover)." in pages()["failover.md"]


def test_every_topic_is_on_one_page() -> None:
    text = "\n".join(pages().values())
    assert dict.fromkeys(REASONS, 1) == {name: text.count(f"\n## {name}\n") for name in REASONS}


def test_every_document_that_the_code_names_exists() -> None:
    named = re.compile(r"docs/[\w/-]+\.md(?:#[\w{}.()-]+)?")
    reasons = {
        row.outage.reason.lower() for row in _MANAGED if row.outage and row.of == DM_CLUSTER and row.outage.leaderless
    }
    rooms = (path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests")
    texts = {path: path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py")}
    found = {each for text in texts.values() for each in named.findall(text)}
    targets = {each.replace("{outage.reason.lower()}", reason) for each in found for reason in reasons}
    assert found
    assert set() == {each for each in targets if not _exists(each)}


def _exists(named: str) -> bool:
    """True if a document, and its anchor if it has one, exists."""
    page, _, anchor = named.partition("#")
    return (ROOT / page).exists() and (not anchor or anchor in anchors(ROOT / page))


def test_writing_creates_removes_and_corrects_pages(tmp_path: Path) -> None:
    directory = tmp_path / "reasons"
    write(directory)
    (directory / "dm.md").write_text("old")
    (directory / "gone.md").write_text("old")
    (directory / "spec.md").unlink()
    assert ["dm.md", "gone.md", "spec.md"] == outdated(directory)
    write(directory)
    assert [] == outdated(directory)
