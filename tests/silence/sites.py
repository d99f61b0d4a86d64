"""The operator's destructive calls, found in its source."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

ROOMS = ("member", "meta", "controllers", "discovery", "dataplane", "scheduler")

ACTIONS = frozenset(
    {
        "ClosePumpNode",
        "Delete",
        "EndLogTask",
        "EvictLeaders",
        "MoveTables",
        "RemoveFinalizer",
        "RemoveMaster",
        "RemoveMember",
        "RemoveStore",
        "RemoveWorker",
        "ResignMaster",
        "ResignOwner",
        "TransferLeader",
        "TransferPrimary",
        "delete_job",
        "delete_if",
        "prune",
        "end_log_task",
        "hand_leadership",
        "set_policy",
        "PodDeletion",
    }
)
"""Actions and functions that destroy, or hand over what is to be destroyed."""

_METHODS = frozenset(
    {
        "evict_leader",
        "resign_leader",
        "transfer_leader",
        "transfer_primary",
        "resign_owner",
        "begin_evict_leaders",
        "remove_finalizer",
        "delete_member",
        "delete_store",
        "delete_master",
        "delete_worker",
        "delete_job",
        "delete_together",
        "delete_collection",
    }
)
"""Methods that do, whatever they are called on."""

_QUALIFIED = frozenset(
    {
        ("destroyer", "delete"),
        ("topology", "forget"),
        ("kernel", "end"),
        ("evictions", "begin"),
        ("jobs", "clean_job"),
        ("jobs", "import_job"),
        ("jobs", "log_job"),
        ("jobs", "prune_job"),
        ("jobs", "restore_job"),
        ("jobs", "step_job"),
        ("jobs", "stop_job"),
        ("Replicas", "lowered"),
        ("UpdateStrategy", "lowered"),
        ("UpdateStrategy", "on_delete"),
    }
)
"""Methods that destroy, or build a Job that does, if their object has this name."""

_DOORS = (
    "member/actions.py",
    "controllers/database_actions.py",
    "controllers/executor.py",
    "dataplane/pd.py",
    "dataplane/dm.py",
)
"""The functions themselves, which take evidence where something is lost."""

_LOCAL = {
    ("member/backups/jobs.py", "prune"),
}
"""Variables that have the name of a function."""

_FIELD = "tikv.evict_leader"
"""A field of the status, no method."""


def sites() -> frozenset[str]:
    """All sites, as `module function call`."""
    paths = (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))
    return frozenset(site for path in paths for site in _sites_of(path))


def _sites_of(path: Path) -> Iterator[str]:
    module = str(path.relative_to(ROOT))
    if module in _DOORS:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function, call in _calls(tree, ""):
        if (module, call) not in _LOCAL:
            yield f"{module} {function} {call}"


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    """What destroys, below a node, with the innermost function around it; outside of one nothing is called."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    if function and (call := _destroys(node)):
        yield function, call
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, function)


def _destroys(node: ast.AST) -> str:
    """The call as sites word it; empty for anything else. A reference counts: it may be called elsewhere."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in ACTIONS:
        return node.id
    if not isinstance(node, ast.Attribute):
        return ""
    of = _name(node.value)
    if (of, node.attr) in _QUALIFIED:
        return f"{of}.{node.attr}"
    return node.attr if node.attr in _METHODS and f"{of}.{node.attr}" != _FIELD else ""


def _name(node: ast.AST) -> str:
    """The name of an expression."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
