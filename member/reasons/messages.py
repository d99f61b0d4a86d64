"""Every sentence that a user reads in a condition or an event, with its reason, read off the code (docs/messages.md).

So that all of them can be read in one go. Placeholders stand for what is filled in. A sentence that is put together in
several places is shown with each of its parts.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("apis", "controllers", "meta", "member")

_OUTCOMES: Mapping[str, tuple[int, int]] = {
    **{"Done": (1, 0), "Waiting": (0, 1), "Refused": (0, 1), "Failed": (0, 1)},
    "RequeueError": (0, 1),
}
"""Where reason and message stand among the arguments."""

_WAIT = {"RequeueError": "Waiting"}
"""The kind of outcome that the frame of a controller makes of what a step raises."""

_PARTS: Mapping[str, tuple[str, str, int]] = {
    "OwnerGone": ("Waiting", "OwnerDeleted", 0),
    "OwnerChanged": ("Waiting", "SpecChanged", 0),
    "Problem": ("Refused", "InvalidSpec", 2),
    "Keep": ("Waiting", "", 0),
    "Refuse": ("Refused", "", 0),
    "Wait": ("Waiting", "", 0),
}
"""What becomes part of an outcome: its kind, its reason where that is always the same, where the message stands."""

_EVENT = (2, 3)
_MOST = 12
"""Variants of one sentence that are shown."""
_DEEPEST = 4


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """One sentence: the module that says it, `Waiting` or `Event` and so on, the reason, the text."""

    module: str
    kind: str
    reason: str
    text: str


def messages() -> list[Message]:
    """All of them, by module."""
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if "reasons" not in path.parts]
    trees = {path: ast.parse(path.read_bytes()) for path in paths}
    constants: dict[str, list[ast.expr]] = {}
    """What names stand for, attributes of classes as `self.name`."""
    for tree in trees.values():
        constants |= {name: values for name, values in _assignments(tree.body).items() if name.isupper()}
        for each in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for name, values in _assignments(each.body).items():
                constants.setdefault(f"self.{name}", []).extend(values)
    return sorted({message for path, tree in trees.items() for message in _of_module(path, tree, constants)})


def _of_module(path: Path, tree: ast.Module, constants: Mapping[str, list[ast.expr]]) -> Iterator[Message]:
    """What a module says; `constants` are those of all modules, which it may import."""
    module = str(path.relative_to(ROOT))
    constants = {**constants, **_assignments(tree.body)}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        names = constants | _assignments(list(ast.walk(function)))
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            for kind, reason, text in _said(call):
                for sentence in sorted(_texts(text, names)):
                    if sentence and " " in sentence:
                        yield Message(module, kind, "/".join(sorted(_texts(reason, names))) if reason else "", sentence)


def _assignments(nodes: list[ast.stmt] | list[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _said(call: ast.Call) -> Iterator[tuple[str, ast.expr | None, ast.expr]]:
    """Kind, reason and text of what a call says, if it says something."""
    match call.func:
        case ast.Name(id=name) if name in _OUTCOMES:
            reason, text = _OUTCOMES[name]
            if len(call.args) > text:
                yield _WAIT.get(name, name), call.args[reason] if len(call.args) > reason else None, call.args[text]
        case ast.Name(id=name) if name in _PARTS and len(call.args) > _PARTS[name][2]:
            kind, constant, text = _PARTS[name]
            yield kind, ast.Constant(constant) if constant else None, call.args[text]
        case ast.Attribute(attr="event") if len(call.args) > _EVENT[1]:
            yield "Event", call.args[_EVENT[0]], call.args[_EVENT[1]]
        case ast.Name(id="record_event") if len(call.args) > 2:
            yield "Event", call.args[1], call.args[2]


def _texts(node: ast.expr, names: Mapping[str, list[ast.expr]], depth: int = 0) -> set[str]:
    """What an expression may read like."""
    match node if depth <= _DEEPEST else None:
        case ast.Constant(value=str(text)):
            found = {text}
        case ast.JoinedStr(values=parts):
            read = [sorted(_texts(part, names, depth + 1)) for part in parts]
            found = {"".join(each) for each, _ in zip(product(*read), range(_MOST), strict=False)}
        case ast.FormattedValue(value=value):
            found = _inner(value, names, depth)
        case ast.IfExp(body=one, orelse=other):
            found = _texts(one, names, depth + 1) | _texts(other, names, depth + 1)
        case ast.Name(id=name) if name in names:
            found = set().union(*(_texts(value, names, depth + 1) for value in names[name]))
        case ast.Attribute() if ast.unparse(node) in names:
            found = set().union(*(_texts(value, names, depth + 1) for value in names[ast.unparse(node)]))
        case _:
            found = {_placeholder(node)}
    return found


def _inner(node: ast.expr, names: Mapping[str, list[ast.expr]], depth: int) -> set[str]:
    """A value that is filled in: shown by its name, unless it is text that the same function chooses."""
    if isinstance(node, ast.Name) and any(isinstance(v, ast.JoinedStr | ast.IfExp) for v in names.get(node.id, ())):
        return _texts(node, names, depth + 1)
    if isinstance(node, ast.IfExp) or (isinstance(node, ast.Attribute) and ast.unparse(node) in names):
        return _texts(node, names, depth + 1)
    return {_placeholder(node)}


def _placeholder(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"<{name}>"
        case ast.Call(func=ast.Attribute(attr="join"), args=[inner]):
            return f"<{ast.unparse(inner).partition(' for ')[0].partition('.')[0].strip('(')}, …>"
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            return f"<number of {ast.unparse(inner)}>"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"<{name.strip('_')}>"
    return "<…>"


def page() -> str:
    """The text of docs/messages.md."""
    lines = [
        "<!-- Generated by `python -m member.reasons` from the code. -->",
        "",
        "# Messages",
        "",
        "The sentences of conditions and events, by module. `<name>` stands for a value. What is refused as",
        "`InvalidSpec` follows the field and its value; an empty reason is that of the stage. What a reason means and",
        "what to do about it: [reasons](reasons/README.md).",
    ]
    module = ""
    for message in messages():
        if message.module != module:
            module = message.module
            lines += ["", f"## {module}", "", "| Kind | Reason | Message |", "|---|---|---|"]
        lines.append(f"| {message.kind} | {message.reason} | {message.text.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"
