"""Decisions send nothing themselves: they await actions, which the executor performs (ADR 15)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dataplane
from kube.apply import Applier
from kube.client import Client
from kube.deletion import Destroyer
from kube.events import EventRecorder

ROOT = Path(__file__).parents[2]

_WRITES = frozenset(
    {"add_finalizer", "annotate", "annotate_alone", "apply", "create", "delete", "event", "merge", "patch"}
    | {"patch_status", "remove_finalizer", "request"}
)
"""The methods of the doors to the API server that write; `Client.replace` is named like `str.replace`."""

_KINDS_OF_JOBS = tuple(
    f"controllers/{kind}" for kind in ("backup", "backup_schedule", "compact_backup", "job_owners", "restore")
)

_EXEMPT = ("member/initializer/initialize.py", "controllers/job_owners/sync.py")
"""A program that runs in a pod, and the frame that has steps performed."""


def writes() -> frozenset[str]:
    """The names of the methods that write: at the doors to the API server, and of the servers' clients."""
    return _WRITES | {"conclude", "set_password"} | set(_writes_of_servers())


def _writes_of_servers() -> Iterator[str]:
    """The public methods in `dataplane` that send a write, or call one of their class that does."""
    (room,) = dataplane.__path__
    for path in Path(room).glob("*.py"):
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.ClassDef) and each.name.endswith("Client"):
                yield from _writing(each)


def _writing(client: ast.ClassDef) -> Iterator[str]:
    methods = {each.name: each for each in client.body if isinstance(each, ast.FunctionDef)}
    writing = {name for name, each in methods.items() if "write" in _called(each)}
    writing |= {name for name, each in methods.items() if writing & set(_called(each))}
    yield from (name for name in writing if not name.startswith("_"))


def _called(node: ast.AST) -> list[str]:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return [call.attr for call in calls if isinstance(call, ast.Attribute)]


def sent(path: Path, names: frozenset[str]) -> list[str]:
    """The calls of methods with these names in a module, except awaited ones and functions of imported modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom | ast.Import)
        for alias in each.names
    }
    # a decision awaits other decisions, which may have the name of a write
    awaited = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Await)}
    calls = (each.func for each in ast.walk(tree) if isinstance(each, ast.Call) and id(each) not in awaited)
    return [
        f"{path.relative_to(ROOT)}:{call.lineno} {call.attr}"
        for call in calls
        if isinstance(call, ast.Attribute) and call.attr in names and not _is_of_module(call.value, imported)
    ]


def _is_of_module(value: ast.AST, imported: set[str]) -> bool:
    return isinstance(value, ast.Name) and value.id in imported


def test_the_doors_have_the_writes() -> None:
    doors = (Applier, Client, Destroyer, EventRecorder)
    assert set() == {name for name in _WRITES if not any(hasattr(door, name) for door in doors)}
    assert {"delete_store", "transfer_leader", "set_labels", "drain", "close"} <= writes()


@pytest.mark.parametrize("room", ["member", "meta", *_KINDS_OF_JOBS])
def test_no_decision_calls_what_writes(room: str) -> None:
    names = writes()
    paths = (path for path in sorted((ROOT / room).rglob("*.py")) if str(path.relative_to(ROOT)) not in _EXEMPT)
    assert [] == [call for path in paths for call in sent(path, names)]


def test_a_write_in_a_decision_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    module = tmp_path / "hasty.py"
    module.write_text("async def drain(pd, store):\n    pd.delete_store(store)\n", encoding="utf-8")
    assert ["hasty.py:2 delete_store"] == sent(module, writes())


def test_only_the_executor_drives_decisions() -> None:
    drivers = {
        str(path.relative_to(ROOT))
        for room in ("member", "meta", "controllers")
        for path in (ROOT / room).rglob("*.py")
        if {"send", "throw"} & set(_called(ast.parse(path.read_text(encoding="utf-8"))))
    }
    # the stages send outcomes to the order of stages, which is a generator
    assert {"controllers/executor.py", "controllers/stages.py"} == drivers
