"""The rooms of `member/`: which of them know which, so that no arrow points upward (ARCHITECTURE.md)."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOM = Path(__file__).parents[2] / "member"
MOST_NODES, MOST_EDGES = 38, 262


def imports() -> dict[str, set[str]]:
    """The modules and packages right below `member/`, each with those that it imports."""
    found: dict[str, set[str]] = {}
    for path in ROOM.rglob("*.py"):
        name = path.relative_to(ROOM).with_suffix("").parts[0]
        if name != "__init__":
            found.setdefault(name, set()).update(_imported(ast.parse(path.read_bytes())) - {name})
    return found


def _imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            room, _, below = node.module.partition(".")
            if room == "member":
                found |= {below.partition(".")[0]} if below else {alias.name for alias in node.names}
    return found


def test_the_graph_of_rooms_is_small() -> None:
    graph = imports()
    assert len(graph) <= MOST_NODES
    assert sum(map(len, graph.values())) <= MOST_EDGES


def test_no_room_imports_one_that_imports_it() -> None:
    order = list(TopologicalSorter(imports()).static_order())  # raises CycleError, which names the rooms
    assert order.index("context") < order.index("lifecycle") < order.index("components")
