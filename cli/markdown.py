"""Markdown for a comment in a pull request, in which foreign text stays text.

A message of a server may contain `@everyone`, a link or a picture. Here it calls no user and loads nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ports.foreign_text import printable

_STYLE = re.compile(r"[\\`*_\[\]|~$]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""What begins a style, a link, a formula, a cell or an address."""
_MENTION = re.compile(r"([@#])")
"""What refers to a user or an issue. GitHub looks for it in the finished HTML, where an entity would not help."""


def plain(text: str) -> str:
    """Text that shows as it is, on one line."""
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    without_mentions = _MENTION.sub(r"\1<!-- -->", shown)
    return _STYLE.sub(lambda found: f"&#{ord(found[0])};", without_mentions)


def paragraphs(texts: Iterable[str]) -> Iterator[str]:
    """The lines of paragraphs."""
    for text in texts:
        yield plain(text)
        yield ""


def headed(bold: str, text: str) -> Iterator[str]:
    """The lines of a paragraph with a bold beginning."""
    yield f"**{plain(bold)}**{plain(text)}"
    yield ""


def listing(items: Iterable[str]) -> Iterator[str]:
    """The lines of a list; none without items."""
    if lines := [f"- {plain(item)}" for item in items]:
        yield from (*lines, "")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; none without rows."""
    if lines := [f"| {' | '.join(map(plain, row))} |" for row in rows]:
        yield f"| {' | '.join(titles)} |"
        yield f"|{'---|' * len(titles)}"
        yield from (*lines, "")


def document(lines: Iterable[str]) -> str:
    """A text of these lines."""
    return "".join(f"{line}\n" for line in lines)
