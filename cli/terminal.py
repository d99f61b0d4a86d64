"""Safe output of foreign text on a terminal; only the command's own styles take effect."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from ports.foreign_text import printable


@dataclass(frozen=True, slots=True)
class Printable:
    """A rich renderable, restricted to printable characters."""

    inside: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich."""
        for segment in console.render(self.inside, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)


def escaped(text: str) -> str:
    """A JSON document with escapes for all unprintable characters, which keep its meaning."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each == "\n" or each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
