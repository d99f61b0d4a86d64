"""Every cited rule and chapter is in docs/rules/, so that readers of the repository alone can look it up.

Cited are ids (`F35`, `WQ-7`), chapters of a document (`lifecycle.md 7.4`, `objects.md 6.7, 7.4-7.6`), and bare chapters
in parentheses, which belong to a document that the same module names.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rule_coverage import marked

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "docs" / "rules"

_WITHOUT_CITATIONS = ("manifests/", "bench/peers/", "hack/controlplane/", "tests/rules.toml")
"""Files and directories that cite nothing: tests/rules.toml lists all ids of the specification, built or not."""

ITEM = re.compile(r"^- \*\*(\d+(?:\.\d+)*|[A-Z]+-?\d+[a-z]?)\*\*", re.MULTILINE)
CHAPTER = r"\d{1,2}(?:\.\d+)*"
ID = r"[A-Z]+-?\d+[a-z]?"
NAMED = re.compile(rf"\b([a-z-]+)\.md ((?:{CHAPTER}|{ID})(?:(?:, | and |; |-|\.\.)(?:{CHAPTER}|{ID})(?! ?[a-z%]))*)")
BARE = re.compile(rf"\(({CHAPTER})(?: BETTER| step \d+)?(?:, (?:{CHAPTER}|{ID})(?: BETTER)?)*\)")
RANGE = re.compile(rf"({CHAPTER}|{ID})(?:-|\.\.)({CHAPTER}|{ID}|\d+)")


@dataclass(frozen=True, slots=True)
class Cited:
    """One citation: where it stands, the documents that may be meant (none: any), and the chapter or id."""

    path: str
    documents: tuple[str, ...]
    rule: str


def rules() -> Mapping[str, frozenset[str]]:
    """The chapters and ids of each document."""
    return {path.stem: frozenset(ITEM.findall(path.read_text(encoding="utf-8"))) for path in RULES.glob("*.md")}


KNOWN = rules()
IDS = frozenset().union(*KNOWN.values())
FAMILIES = "|".join(
    sorted({re.sub(r"-?\d+[a-z]?$", "", rule) for rule in IDS if rule[0].isalpha()}, key=len, reverse=True)
)
RULE = re.compile(rf"(?<![\w#/.-])(?:{FAMILIES})-?\d+[a-z]?(?![\w-])(?<!A00\d)")
"""`A002` is the linter's."""

MARK = re.compile(rf"(?:([a-z-]+)-)?({CHAPTER}|(?:{FAMILIES})-?\d+[a-z]?)")
"""An argument of `@pytest.mark.rule`: `WQ-2`, `F35`, `lifecycle-8.3`."""


def tracked(*endings: str) -> Iterator[Path]:
    """The files of the repository with one of these endings."""
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    yield from (ROOT / name for name in names if name.endswith(endings) and (ROOT / name).exists())


def said(path: Path) -> str:
    """The prose of a file: of Python the docstrings and comments, of any other file everything."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    strings = filter(None, map(_docstring, _statements(ast.parse(text))))
    # separating comments from strings would take long, and few modules have a comment with a number
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if _NUMBERED.search(text) else ()
    return "\n\n".join([*strings, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


_NUMBERED = re.compile(r"#.*\d")


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Those below a node: no string stands by itself anywhere else."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(tree, part, ()):
            yield statement
            yield from _statements(statement)


def _docstring(node: ast.AST) -> str:
    """A string that stands by itself, also below a constant."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def citations(path: str, text: str, marks: Iterable[str] = ()) -> Iterator[Cited]:
    """The citations of a text, and of the `marks` of its tests."""
    text = re.sub(r"\s*\n\s*(?=[\w(])", " ", text)
    named = [(found[1], found[2]) for found in NAMED.finditer(text) if found[1] in KNOWN]
    documents = tuple(dict.fromkeys(document for document, _ in named))
    for document, listed in named:
        for rule in _each(listed):
            yield Cited(path, () if rule[0].isalpha() else (document,), rule)
    for found in BARE.finditer(text):
        chapters = re.findall(rf"(?<![\w.-]){CHAPTER}(?![\w.-])", re.sub(r" step \d+", "", found[0]))
        if all("." in each for each in chapters) or documents:
            yield from (Cited(path, documents, chapter) for chapter in chapters)
    yield from (Cited(path, (), rule) for rule in RULE.findall(text))
    for found in filter(None, map(MARK.fullmatch, marks)):
        yield Cited(path, (found[1],) if found[1] else (), found[2])


def _each(listed: str) -> Iterator[str]:
    for part in re.split(r", | and |; ", listed):
        found = RANGE.fullmatch(part)
        yield from (found[1], _completed(found[1], found[2])) if found else (part,)


def _completed(first: str, last: str) -> str:
    """The end of a range such as `CW-4..7`."""
    prefix = re.match(r"[A-Z]+-?", first)
    return f"{prefix[0]}{last}" if prefix and last.isdecimal() else last


def all_citations() -> Iterator[Cited]:
    """The citations of the whole repository except the rules themselves."""
    for path in tracked(".py", ".md", ".toml", ".yaml", ".sh", ".cfg", ".go"):
        where = str(path.relative_to(ROOT))
        if path.is_relative_to(RULES) or where.startswith(_WITHOUT_CITATIONS):
            continue
        marks = [rule for rule, _ in marked(path.read_text(encoding="utf-8"))] if path.suffix == ".py" else ()
        yield from citations(where, said(path), marks)


def resolves(cited: Cited) -> bool:
    """True if a document that the citation may mean has an item of that name."""
    documents = cited.documents or tuple(KNOWN)
    return any(cited.rule in KNOWN.get(document, ()) for document in documents)


def test_every_citation_resolves() -> None:
    assert [] == sorted({f"{cited.path}: {cited.rule}" for cited in all_citations() if not resolves(cited)})


def test_no_rule_is_listed_twice() -> None:
    every = [rule for path in RULES.glob("*.md") for rule in ITEM.findall(path.read_text(encoding="utf-8"))]
    ids = [rule for rule in every if rule[0].isalpha()]
    assert [] == sorted({rule for rule in ids if ids.count(rule) > 1})


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("As lifecycle.md 7.4 says.", ["7.4"]),
        ("See objects.md 6.7, 7.5-7.8 (F11).", ["6.7", "7.5", "7.8", "F11"]),
        ("informers-workqueue.md CW-4..7, MET-10", ["CW-4", "CW-7", "MET-10", "CW-4", "MET-10"]),
        ("Something (lifecycle.md 8.1).\n\nMore (8.3 BETTER, F32).", ["8.1", "8.3", "F32"]),
        ("A pod of 1.5 GiB (see below) has F of 3.", []),
    ],
)
def test_what_counts_as_a_citation(text: str, cited: list[str]) -> None:
    assert cited == [each.rule for each in citations("here", text)]


def test_a_missing_rule_does_not_resolve() -> None:
    assert not resolves(Cited("here", ("lifecycle",), "7.99"))
    assert not resolves(Cited("here", (), "F999"))
    assert resolves(Cited("here", ("lifecycle",), "7.4"))


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"^- \*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert 0 < len(rows) <= 40


def test_no_test_is_named_by_a_rule() -> None:
    by_rule = re.compile(rf"def (test_(?:(?:{FAMILIES})_?\d+|\d{{1,2}}_\d{{1,2}}_)\w*)")
    texts = (path.read_text(encoding="utf-8") for path in tracked(".py") if path.is_relative_to(ROOT / "tests"))
    assert [] == [name for text in texts for name in by_rule.findall(text)]
