"""The prose of the repository: docstrings, comments, messages, test names, and paragraphs of documents."""

import ast
import hashlib
import io
import json
import re
import subprocess
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "style.json"

_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PRAGMA = re.compile(r"#\s*(noqa|type:|pragma|fmt:|!|mypy:|ruff:|-\*-)")
_BULLET = re.compile(r"\s*([-*+]|\d+\.) ")


_PROSE = 3
"""Words from which on a text of one line is a message, not a name."""


class Text(NamedTuple):
    """One docstring, comment, message, test name or paragraph, with the line it starts at."""

    kind: str
    line: int
    text: str


def tracked(*endings: str) -> list[str]:
    """Paths of the repository's files, relative to its root, that have one of the endings."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if name.endswith(endings) and (ROOT / name).exists()]


def all_texts() -> Mapping[str, Sequence[Text]]:
    """The texts of every Python and Markdown file, by path. Files that have not changed are read from a cache."""
    known: dict[str, list[list[object]]] = json.loads(CACHE.read_text(encoding="utf-8")) if CACHE.exists() else {}
    salt = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    texts: dict[str, Sequence[Text]] = {}
    kept: dict[str, list[list[object]]] = {}
    for name in tracked(".py", ".md"):
        content = (ROOT / name).read_bytes()
        key = hashlib.sha256(salt.encode() + name.encode() + content).hexdigest()
        if key in known:
            texts[name] = [Text(str(kind), int(str(line)), str(text)) for kind, line, text in known[key]]
        else:
            texts[name] = list(of_file(name, content.decode()))
        kept[key] = [list(text) for text in texts[name]]
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(kept), encoding="utf-8")
    return texts


def of_file(name: str, content: str) -> Iterator[Text]:
    """The texts of one file."""
    if name.endswith(".md"):
        return of_markdown(content)
    return of_python(content, is_test=name.startswith("tests/"))


def of_python(source: str, *, is_test: bool) -> Iterator[Text]:
    """Docstrings and comment blocks; messages of the product, and names of tests with spaces for underscores."""
    tree = ast.parse(source)
    for node in _statements(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Text("docstring", node.lineno, text)
            case ast.FunctionDef(name=name) if is_test and name.startswith("test_"):
                yield Text("test", node.lineno, name.removeprefix("test_").replace("_", " "))
    if not is_test:
        yield from _messages(tree)
    if "#" in source:
        yield from _comments(source)


def _messages(tree: ast.AST) -> Iterator[Text]:
    """Texts of one line in the code, with `x` for each value; names and programs are none."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Constant(value=str(text)):
                message = text
            case ast.JoinedStr(values=parts):
                message = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in parts)
            case _:
                yield from _messages(node)
                continue
        if "\n" not in message and len(message.split()) >= _PROSE:
            yield Text("message", node.lineno, message)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(tree, part, ()):
            yield statement
            yield from _statements(statement)


def _comments(source: str) -> Iterator[Text]:
    """Comments; those on consecutive lines are one text."""
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _PRAGMA.match(token.string):
            continue
        if block and token.start[0] != last + 1:
            yield Text("comment", start, " ".join(block))
            block = []
        if not block:
            start = token.start[0]
        block.append(token.string.lstrip("# "))
        last = token.start[0]
    if block:
        yield Text("comment", start, " ".join(block))


def of_markdown(content: str) -> Iterator[Text]:
    """Headings, paragraphs, list items and table cells, without code blocks and HTML comments."""
    text = _COMMENT.sub(_blank, _FENCE.sub(_blank, content))
    block: list[str] = []
    start = 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        own = line.lstrip().startswith(("|", "#"))
        if block and (own or not line.strip() or _BULLET.match(line)):
            yield Text("paragraph", start, " ".join(block))
            block = []
        if line.lstrip().startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            yield from (Text("cell", number, cell.strip()) for cell in cells if re.search(r"\w", cell))
        elif own:
            yield Text("heading", number, line.strip("# "))
        elif line.strip():
            if not block:
                start = number
            block.append(line.strip())


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
