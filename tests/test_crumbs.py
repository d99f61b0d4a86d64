"""Small modules that only one other module imports: each belongs into its importer, or to its neighbours.

A reader who follows such an import changes files for less than a page. A module is no crumb if its name is a part of
the plan that all components follow, because a reader looks for it there. Nor is a benchmark, which `make
bench` runs by name.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHORT = 60
MOST = 28
"""The number of crumbs that are left. It may only fall."""

FILES_OF_MEMBER = 163
"""The number of Python files in `member/`. It may only fall, except for a new component: TiCI is three modules."""

PLAN = frozenset({"component", "desired", "status", "scaling", "rolling", "failover", "commands"})
"""The modules of a component in `member/`, of which each has those that it needs."""


def modules() -> dict[str, Path]:
    """The modules of all rooms except the tests, by name."""
    rooms = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    return {_name(path): path for room in rooms for path in room.rglob("*.py")}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def importers(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """The importers of each module."""
    found = defaultdict(set)
    for importer, tree in trees.items():
        for node in ast.walk(tree):
            for name in _imported(node):
                found[name if name in trees else name.rpartition(".")[0]].add(importer)
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def crumbs() -> list[str]:
    """The crumbs, each with its importer."""
    paths = modules()
    texts = {name: path.read_text("utf-8") for name, path in paths.items()}
    known = importers({name: ast.parse(text) for name, text in texts.items()})
    return [
        f"{name} <- {importer}"
        for name, text in texts.items()
        if len(text.splitlines()) < SHORT and not _is_found_by_its_name(paths[name])
        for importer in (known[name] if len(known[name]) == 1 else ())
    ]


def _is_found_by_its_name(path: Path) -> bool:
    in_plan = path.stem in PLAN and path.is_relative_to(ROOT / "member")
    return in_plan or path.stem in ("__init__", "__main__") or path.parent == ROOT / "bench"


def test_a_module_that_one_other_imports_is_not_short() -> None:
    found = crumbs()
    assert len(found) <= MOST, "\n".join(sorted(found))


def test_member_has_few_files() -> None:
    assert FILES_OF_MEMBER >= len(list((ROOT / "member").rglob("*.py")))


def test_the_importers_of_a_module_are_found_by_each_form_of_an_import() -> None:
    trees = {
        "room": ast.parse(""),
        "room.one": ast.parse("import room.two"),
        "room.two": ast.parse("from room import three"),
        "room.three": ast.parse("from room.one import something"),
    }
    assert {"room.two": {"room.one"}, "room.three": {"room.two"}, "room.one": {"room.three"}} == importers(trees)
