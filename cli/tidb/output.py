"""The form of answers: a page for people with a fixed width, or a document for programs."""

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from types import MappingProxyType

import msgspec
import yaml
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from cli.terminal import Printable, escaped
from kube.objects import Json

FORMATS = ("table", "json", "yaml")

PLAN_FORMATS = (*FORMATS, "markdown", "html")
"""The forms of plans and drills; Markdown is for comments in pull requests, HTML for a browser."""

WIDTH = 80
"""The default width in columns."""

_GAP = 2
"""Blanks between columns."""

_LEAST = 18
"""Columns that the last column of a table takes before others are wrapped for it."""

Page = Iterable[RenderableType]

GOOD, BAD, UNDER_WAY, FAINT = "green", "red", "yellow", "dim"
"""The meaning of colours."""


@dataclass(frozen=True, slots=True)
class Output:
    """`form` is one of FORMATS; `width` and `colours` are for pages."""

    form: str = "table"
    width: int = WIDTH
    colours: bool = False

    def show(
        self, document: Json, page: Callable[[], Page], others: Mapping[str, Callable[[], str]] = MappingProxyType({})
    ) -> None:
        """Print an answer in the requested form; `others` are texts in further forms."""
        match self.form:
            case form if form in others:
                text = others[form]()
            case "json":
                text = escaped(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"
            case "yaml":
                text = _yaml(document)
            case _:
                text = rendered(page(), self.width, colours=self.colours)
        sys.stdout.write(text)
        sys.stdout.flush()

    @property
    def is_for_people(self) -> bool:
        """True if pages are requested."""
        return self.form == "table"


def output_for(form: str, environ: Mapping[str, str], *, no_color: bool) -> Output:
    """The output of this process: as wide as the terminal, and coloured on one, unless disabled."""
    colours = sys.stdout.isatty() and not no_color and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Output(form, shutil.get_terminal_size((WIDTH, 0)).columns, colours)


def _yaml(document: Json) -> str:
    """YAML in the user's script, or ASCII with escapes if a terminal would obey some character."""
    readable: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    escaped_text: str = yaml.safe_dump(document, sort_keys=False)
    return readable if readable.replace("\n", "").isprintable() else escaped_text


def rendered(page: Page, width: int = WIDTH, *, colours: bool = False) -> str:
    """The text of a page; no line exceeds `width` or ends with blanks."""
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colours, no_color=not colours, markup=False, highlight=False, emoji=False
    )
    for part in page:
        console.print(Printable(part))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


class Columns:
    """A table without lines, like kubectl's. Long cells wrap, in the last column first."""

    def __init__(self, *titles: str) -> None:
        """Without titles there is no header."""
        self._titles = titles
        self._rows: list[tuple[Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        """Add a row; brackets in a cell are not styles."""
        self._rows.append(tuple(text if isinstance(text, Text) else Text(text) for text in cells))

    def __bool__(self) -> bool:
        """True if there are rows."""
        return bool(self._rows)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich: the table for a page of that width."""
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="", show_header=bool(self._titles))
        *front, _ = self._widths()
        whole = sum(front) + _GAP * len(front) + _LEAST <= options.max_width
        for at in range(len(front) + 1):
            title = self._titles[at] if self._titles else ""
            table.add_column(title, overflow="fold", no_wrap=whole and at < len(front))
        for row in self._rows:
            table.add_row(*row)
        yield table

    def _widths(self) -> list[int]:
        rows = [*([tuple(map(Text, self._titles))] if self._titles else []), *self._rows]
        return [max(each.cell_len for cell in column for each in cell.split()) for column in zip(*rows, strict=False)]
