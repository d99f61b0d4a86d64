"""The templates of the page, and the filters that they use."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cli.reasons.registry import REASONS
from cli.tidb.clusters import SHORT
from cli.tidb.status.backups import shown_backups
from cli.tidb.status.page import member_in_words
from cli.tidb.status.report import Summary
from cli.tidb.ui.overview import needs_user
from ports.foreign_text import printable


def templates(*, writes: bool = False, playground: bool = False) -> Environment:
    """The templates. Every value is escaped, and restricted to printable characters."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _FILTERS
    made.globals |= {"writes": writes, "playground": playground}
    made.tests["reason"] = REASONS.__contains__
    return made


def _printable(value: object) -> object:
    # Markup, a subclass, is made by templates
    return printable(value, lines=True) if type(value) is str else value


def _count(number: int, noun: str) -> str:
    """A number with its noun, e.g. `2 clusters`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def _path(cluster: Summary) -> str:
    """The address of a cluster's page."""
    short = next(short for short, kind in SHORT.items() if kind.kind == cluster.kind)
    return f"/clusters/{short}/{quote(cluster.namespace, '')}/{quote(cluster.name, '')}"


def _query(asked: Mapping[str, str], **more: object) -> str:
    """What a form asks for and more, for an address."""
    return urlencode({**asked, **more})


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


_MARKS = re.compile(r"`([^`]+)`|\[([^\]]+)\]\([^)]+\)")
"""Code, and links to documents that are not here."""


def _marked(text: str, own: str) -> Markup:
    """The Markdown of the page of the reason `own` as HTML; it links other reasons."""

    def shown(found: re.Match[str]) -> Markup:
        code, link = found.groups()
        if code in REASONS and code != own:
            return Markup('<a href="/reasons/{}">{}</a>').format(code, code)
        return Markup("<code>{}</code>").format(code) if code else escape(link)

    pieces, at = [], 0
    for found in _MARKS.finditer(text):
        pieces += [escape(text[at : found.start()]), shown(found)]
        at = found.end()
    return Markup("").join([*pieces, escape(text[at:])])


WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""`date.strftime` would name them in the user's language, in which the page is not."""

_FILTERS: Mapping[str, Callable[..., object]] = {
    "count": _count,
    "marked": _marked,
    "member_in_words": member_in_words,
    "moment": _moment,
    "needs_user": needs_user,
    "path": _path,
    "query": _query,
    "shown_backups": shown_backups,
    "weekday": lambda day: WEEKDAYS[day.weekday()],
}
