"""The rules of the style (docs/style.md), as findings in texts."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.style.texts import ROOT, Text

LONGEST = 40
"""Words of a sentence."""

LONGEST_SUBJECT = 72
"""Characters of a commit's subject."""

_CODE = re.compile(r"``?[^`]*``?")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_END = re.compile(r"[.!?](?=[\s)\"'*]|$)[)\"'*]*|\n\s*\n|\n\s*[-*] ")
_TRACKER = re.compile(r"\b(issue|ticket|round) #?\d+|(?<![\w/#])#\d+\b", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![\w./@-])([a-z_]\w*(?:\.\w+)+)(?![\w/*-])")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ROW = re.compile(r"\n(?=\s*\||.*\S {2,}\S|.*[─├└│])")
"""The break before a row of a table or a line of a diagram."""
_FILE = re.compile(r"\.(md|py|yaml|json|toml|sh|go|cfg|txt|svg|in|tpl)$")


class Finding(NamedTuple):
    """One violation: the file, the line, and what to change."""

    path: str
    line: int
    what: str


@cache
def words() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """One pattern for all forbidden phrases, and the replacement for each."""
    with Path(__file__).with_name("words.toml").open("rb") as file:
        table: dict[str, str] = tomllib.load(file)["words"]
    return re.compile(rf"\b(?:{'|'.join(table)})\b", re.IGNORECASE), table


def findings(path: str, texts: Sequence[Text]) -> Iterator[Finding]:
    """The violations in the texts of one file."""
    for text in texts:
        for what in _in_prose(_plain(text.text), with_length=text.kind not in ("test", "message")):
            yield Finding(path, text.line, what)
        if text.kind == "message":
            continue
        if path.endswith(".py"):
            yield from (Finding(path, text.line, what) for what in _missing_names(text.text))
        else:
            yield from (Finding(path, text.line, what) for what in _dead_links(ROOT / path, text.text))


def in_subject(subject: str) -> Iterator[str]:
    """The violations in the subject of a commit."""
    if len(subject) > LONGEST_SUBJECT:
        yield f"{len(subject)} characters; use at most {LONGEST_SUBJECT}"
    if not re.match(r"[\w./-]+(, [\w./-]+)*: \S", subject):
        yield "start with the part that changes and a colon, e.g. 'member/pd: keep voters while PD is silent'"
    yield from _in_prose(subject, with_length=False)


def subjects() -> Sequence[str]:
    """Subjects of the commits that the main branch lacks; empty where there is no main branch."""
    for base in ("origin/main", "main"):
        command = ["git", "log", "--no-merges", "--format=%s", f"{base}..HEAD"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.splitlines()
    return ()


def _in_prose(text: str, *, with_length: bool) -> Iterator[str]:
    pattern, table = words()
    for found in pattern.finditer(text):
        phrase = found[0].lower()
        instead = next(way for each, way in table.items() if re.fullmatch(each, phrase))
        yield f"{phrase!r}: {instead}"
    for found in _TRACKER.finditer(text):
        yield f"{found[0]!r}: a tracker outside the repository; state the reason itself"
    if with_length:
        for sentence in _END.split(text):
            if (length := len(sentence.split())) > LONGEST:
                yield f"a sentence of {length} words; split it: {' '.join(sentence.split()[:6])} …"


def _plain(text: str) -> str:
    """The text with code as one word, links as their labels, rows apart, and the lines of a paragraph joined."""
    text = _ROW.sub("\n\n", _LINK.sub(r"\1", _CODE.sub("`x`", text)))
    return re.sub(r"(?<!\n)\n(?!\s*\n|\s*[-*] )\s*", " ", text)


def _dead_links(document: Path, text: str) -> Iterator[str]:
    for _, target in _LINK.findall(_CODE.sub("", text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, heading = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists():
            yield f"dead link {target}"
        elif heading and file.suffix == ".md" and heading not in anchors(file):
            yield f"dead anchor {target}"


@cache
def anchors(file: Path) -> frozenset[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = _HEADING.findall(file.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\- ]", "", _LINK.sub(r"\1", each).strip().lower()) for each in headings)
    return frozenset(each.replace(" ", "-") for each in plain)


def _missing_names(text: str) -> Iterator[str]:
    for found in _DOTTED.finditer(text):
        name = found[1]
        if name.partition(".")[0] in _rooms() and not _FILE.search(name) and not _exists(name):
            yield f"{name} does not exist"


@cache
def _rooms() -> frozenset[str]:
    """The top-level packages."""
    return frozenset(path.parent.name for path in ROOT.glob("*/__init__.py"))


@cache
def _exists(name: str) -> bool:
    """True if a dotted name is a module, or a definition in one; attributes of instances count as known."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        # git leaves the folder of a package that has become a module, for its bytecode
        package = base / "__init__.py"
        module = package if package.exists() else base.with_suffix(".py")
        if module.exists():
            return length == len(parts) or parts[length] in _defined(module)
    return False


@cache
def _defined(module: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_bytes())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.ImportFrom(names=imported):
                names.update(each.asname or each.name for each in imported)
    return frozenset(names)
